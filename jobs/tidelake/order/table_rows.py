"""What is known of one table's rows in a window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tidelake.config.feed import Feed
from tidelake.errors import OrderError
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.history.incarnations import Column, Incarnation, Name
from tidelake.history.names import SentNames
from tidelake.history.projection import CellPlace, Projection, lived, project
from tidelake.lake.columns.cells import NAMES_SENT, CastRules
from tidelake.lake.tables import kept, mask_of, value_rules
from tidelake.order.change_sequence import ChangeSequence
from tidelake.wire.masks import check_mask


@dataclass(frozen=True, kw_only=True)
class TableRows:
    """One table of a window.

    Attributes:
        feed: The feed.
        incarnation: The table.
        names: Names as sent, each with the interval in which it belongs to this table.
        row_schemas: The schemas of its rows.
        bucket: The changelog column that rows are bucketed by, if any.
        buckets: Number of buckets.
        sequence: How its changes are numbered.
        images: Schemas of rows after changes, schemas of deleted rows.
    """

    feed: Feed
    incarnation: Incarnation
    names: tuple[Name, ...]
    row_schemas: tuple[RowSchema, ...]
    bucket: str | None
    buckets: int
    sequence: ChangeSequence
    images: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())

    @cached_property
    def projections(self) -> list[Projection]:
        """Return all columns that existed in the window, except those that the feed drops."""
        known = {c.id for c in kept(self.feed, self.incarnation, lived(self.incarnation))}
        return [p for p in project(self.incarnation, self.row_schemas) if p.column.id in known]

    @property
    def key_only_deletes(self) -> bool:
        """Whether deletes lack columns that other changes have (`delete-only-output-handle-key-columns`; no message states the option)."""
        after, deletes = self.images
        alive = {c.id for c in self.incarnation.columns}
        carried = [{place.row_schema for place in p.places} for p in self.projections if p.column.id in alive]
        return any(not deletes <= schemas for schemas in carried if not after or after & schemas)

    @property
    def untrusted(self) -> list[str]:
        """Columns whose values Craft's encoder damages."""
        if self.feed.protocol != "craft":
            return []
        return [p.column.name for p in self.projections if any(place.type.word == "float" for place in p.places)]

    def rules(self, column: Column) -> CastRules:
        """Return how a column's text becomes a value."""
        values = value_rules(self.feed, self.incarnation, column)
        return CastRules(time_zone=self.feed.time_zone, values=values, names_sent=self.feed.protocol in NAMES_SENT)

    def sent(self, place: CellPlace) -> SchemaColumn:
        """Return the column as the schema of a cell describes it."""
        return self._columns[place.row_schema][place.position]

    @cached_property
    def _columns(self) -> dict[int, tuple[SchemaColumn, ...]]:
        """The columns of each schema, by its id."""
        return {s.id: s.columns for s in self.row_schemas}

    def clear_cells(self) -> list[CellPlace]:
        """Return the places of cells that must be hashed and are not.

        Raises:
            ConfigError: A column cannot have its mask.
            OrderError: MASKED: cells have another mask.
        """
        i = self.incarnation
        for c in lived(i):
            if (mask := mask_of(self.feed, i, c)) is not None:
                check_mask(i.name, c.name, mask, c.id in i.key, c.type)
        return [place for p in self.projections for place in self._in_clear(p)]

    def _in_clear(self, p: Projection) -> list[CellPlace]:
        wanted = mask_of(self.feed, self.incarnation, p.column)
        for place in p.places:
            have = self.sent(place).mask
            if have is not None and have != wanted:
                raise OrderError(
                    f"column {p.column.name} of {self.incarnation.name} was decoded with mask {have}, the feed sets {wanted or 'none'}",
                    code="MASKED",
                    remedy=f"decode the hours after the last cut again: `tidelake decode --feed {self.feed.name} --hour … --redo`",
                )
        hashes = wanted is not None and wanted.startswith("hash")
        return [place for place in p.places if hashes and self.sent(place).mask is None]


def sent_names(incarnation: Incarnation, sent: SentNames[tuple[str, str]]) -> tuple[Name, ...]:
    """Return the names in messages that belong to this table, each with its interval."""
    return tuple(
        Name(database=d, table=t, after_ts=n.after_ts, until_ts=n.until_ts)
        for n in incarnation.names
        for d, t in sorted(sent.of(n.database, n.table))
    )
