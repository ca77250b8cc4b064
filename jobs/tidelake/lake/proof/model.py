"""Models of a certificate, as the audit reads it. Their docstrings are the descriptions in schemas/certificate.schema.json."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tidelake.io.documents import schema_of
from tidelake.lake.cut import LateCounts, TableCut

Kind = Literal["hour", "seed", "redo", "rollback", "rewrite"]
_HEX = r"^[0-9a-f]{64}$"


class _Member(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Sha256(_Member):
    """A sha256 in hex."""

    sha256: str = Field(pattern=_HEX)


class TableProof(_Member):
    """A table at the cut.

    kind: snapshot or changelog; incarnation: the table's life, as in tables and changelogs; uuid: Iceberg's, which renames do not change;
    metadata: location of the Iceberg metadata file when the cut was published, null if it is not known; rows: rows of the snapshot, those
    of data files less those of delete files; files: number of data and delete files; size: their bytes; unproven: files whose sha256 is
    not known.
    """

    kind: Literal["snapshot", "changelog"]
    incarnation: str
    uuid: str
    snapshot_id: int
    metadata: str | None
    rows: int
    files: int
    size: int
    unproven: int


class Subject(_Member):
    """A table of the cut. name: its identifier; digest: of the list of its files."""

    name: str
    digest: Sha256
    annotations: TableProof


class Previous(_Member):
    """The certificate of the cut published before. cut: its number; sha256: of its bytes, null if it was lost then."""

    cut: int
    sha256: str | None = Field(pattern=_HEX)


class ManifestDigest(_Member):
    """A manifest of the window: of an hour's landed objects. sha256: of its bytes, null if it was lost when the cut was published."""

    hour: str
    generation: int
    key: str
    sha256: str | None = Field(pattern=_HEX)


class Inputs(_Member):
    """What the cut was made from."""

    manifests: tuple[ManifestDigest, ...]


class Package(_Member):
    """The version of Tidelake that published the cut. sha256: over its modules."""

    version: str
    sha256: str = Field(pattern=_HEX)


class Definitions(_Member):
    """What the run that published the cut had. files: sha256 of the files in the feed's folder, by path."""

    files: dict[str, str]
    package: Package


class WhereTo(_Member):
    """Row events of a table in the window, and late ones. in = out + duplicate + late + quarantined.

    changes: rows written to the table's changelog.
    """

    in_: int = Field(alias="in")
    out: int
    duplicate: int
    late: int
    quarantined: int
    changes: int


class WindowCounts(_Member):
    """Row events, by the first look at the window. in: in the window; late: at or before it; undated: those of `in` without a commit ts."""

    in_: int = Field(alias="in")
    late: int
    undated: int


class EventCounts(_Member):
    """Where the row events went. tables: by table; the sums over the tables are the window's numbers."""

    window: WindowCounts
    tables: dict[str, WhereTo]


class RemovedChanges(_Member):
    """Changes that maintenance removed from a changelog.

    files, rows, bytes: sums; first, last: oldest and youngest day or hour; archived: location of the manifest of their copies, null if
    they were not copied.
    """

    files: int
    rows: int
    bytes: int
    first: str
    last: str
    archived: str | None


class LetGo(_Member):
    """What maintenance removed from the cut before.

    changelog_retained_after: TSO after which changelogs have all changes; tables: removed changes by changelog; dropped: tables that were
    dropped and that the cut does not have any more, name by incarnation.
    """

    changelog_retained_after: int
    tables: dict[str, RemovedChanges]
    dropped: dict[str, str] = {}


class Predicate(BaseModel):
    """What was published from what, and what was checked.

    kind: what the publication was; parent_seq: the cut that this one continues, null for the one published before; previous: null for the
    first certificate; abandoned: numbers between that and this one whose publication was abandoned; uncovered: tables of the cut without a
    list of files, which are no subjects; generations: generation of each hour's manifest; earlier_generations: of
    earlier hours that were read again; offsets: gap-free offsets by topic and partition,
    first and last; resolved_ts_by_partition: by topic and partition; events: number of events in the messages of generations, by kind.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    feed: str
    cut: int
    kind: Kind
    parent_seq: int | None
    previous: Previous | None
    abandoned: tuple[int, ...]
    hour: str
    applied_ts: int
    resolved_ts: int
    run: str
    version: str
    published_at_ms: int
    incomplete: bool
    accepted: tuple[str, ...] = ()
    generations: dict[str, int]
    earlier_generations: dict[str, int] = {}
    offsets: dict[str, dict[int, tuple[int, int]]]
    resolved_ts_by_partition: dict[str, dict[int, int]]
    inputs: Inputs
    definitions: Definitions
    uncovered: tuple[str, ...]
    counts: EventCounts | None = None
    messages: int = 0
    events: dict[str, int] = {}
    rows: dict[str, dict[str, Any]]
    late: dict[str, LateCounts] = {}
    ddl: tuple[dict[str, Any], ...]
    expectations: dict[str, Any]
    decisions: tuple[dict[str, Any], ...] = ()
    let_go: LetGo | None = None
    tables: dict[str, TableCut]
    changelogs: dict[str, TableCut]


class Certificate(_Member):
    """An in-toto Statement v1 about the tables of a cut."""

    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: tuple[Subject, ...]
    predicate_type: Literal["urn:tidelake:certificate:v2"] = Field(alias="predicateType")
    predicate: Predicate


def json_schema() -> bytes:
    """Return the JSON Schema of certificates: schemas/certificate.schema.json."""
    return schema_of(Certificate)
