"""Checks of `tidelake check` that need several files of a feed: contradicting settings, expectations that no table can meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tidelake.errors import TidelakeError

if TYPE_CHECKING:
    from tidelake.config.feed import Feed
    from tidelake.history.contract import Expectation, RecordedDdl, TableContract


def mistakes(feed: Feed, tables: Sequence[TableContract], ddl: Sequence[RecordedDdl], rules: Sequence[Expectation]) -> list[str]:
    """Return one sentence for each mistake.

    Args:
        feed: The feed; its variables may be unset.
        tables: Tables of tables.sql.
        ddl: Statements of ddl.jsonl.
        rules: The feed's expectations.
    """
    found = list[str]()
    for check in _checks(feed, tables, ddl, rules):
        try:
            check()
        except TidelakeError as e:
            found.append(str(e))
    return found


def _checks(
    feed: Feed, tables: Sequence[TableContract], ddl: Sequence[RecordedDdl], rules: Sequence[Expectation]
) -> Iterator[Callable[[], None]]:
    from tidelake.land.hour import check_layout
    from tidelake.spark.lake_settings import check_catalog
    from tidelake.validate.quality.applicable import check_columns, columns_of

    yield partial(check_catalog, feed)
    if feed.source.kind == "archive":
        yield partial(check_layout, feed)
    known = columns_of(tables, ddl, feed) if rules else {}
    yield from (partial(check_columns, rule, known) for rule in rules)
