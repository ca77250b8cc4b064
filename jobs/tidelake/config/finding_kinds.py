"""The findings of landing: codes, severities, meanings, remedies, and what a feed may decide about each.

docs/findings.md shows these tables. feed.toml is checked against them at parse time, so this module imports little.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

Severity = Literal["info", "warning", "critical"]
Action = Literal["block", "warn", "ignore"]

LONG_OVER = timedelta(hours=3)  # this long after an hour's end, new objects are copies or late files, and no run waits for more
SEVERITIES: dict[Action, Severity] = {"block": "critical", "warn": "warning", "ignore": "info"}
_ANY: tuple[Action, ...] = ("block", "warn", "ignore")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of finding. severity: the default; but: the cases with another default; allowed: actions that `on_finding` may give it;
    because: why not all actions are allowed.
    """

    severity: Severity
    meaning: str
    remedy: str
    but: str = ""
    allowed: tuple[Action, ...] = _ANY
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A reason to land or archive nothing. Exit code 3; no policy overrides it."""

    meaning: str
    remedy: str


_UP_TO_THE_GAP = "the resolved ts then counts only up to the gap"
_AS_BYTES = "set value.converter = ByteArrayConverter in the connector, and source.layout to the matching layout"
_KEEP_THEM = "prefer a layout that keeps them"

KINDS = {  # most serious first
    "OVERLAP_CONFLICT": Kind(
        severity="critical",
        meaning="an offset occurs with different contents; none of them is landed",
        remedy="find out which of the objects is wrong, move it out of the archive and land the hour again",
        allowed=("block", "warn"),
        because="messages are left out",
    ),
    "GAP": Kind(
        severity="critical",
        but='warning with `on_gap = "warn"`',
        meaning="offsets are missing inside the hour, or between it and the hours before, and no landed hour and no object name of the "
        "next 24 hours has them; for a storage sink also: the newest files of a folder, which its index names, are missing",
        remedy=f'restore the missing file and land the hour again, or set [policy] on_gap = "warn": {_UP_TO_THE_GAP}',
    ),
    "EXPIRED": Kind(
        severity="critical",
        but='warning with `on_gap = "warn"`',
        meaning="the topic's retention deleted messages before they were landed (live topics)",
        remedy="give the topic a longer retention and land in time; restore the messages from an archive, or set [policy] "
        f'on_gap = "warn": {_UP_TO_THE_GAP}',
    ),
    "MISSING_PARTITION": Kind(
        severity="critical",
        but='warning with `on_gap = "warn"`; info where the resolved ts is not in the messages',
        meaning="the hour has no message of a partition that feed.toml expects",
        remedy="find out why the archiver wrote nothing for it (an idle partition still receives resolved events), restore "
        f'its files and land the hour again, or set [policy] on_gap = "warn": {_UP_TO_THE_GAP}',
    ),
    "UNEXPECTED_PARTITION": Kind(
        severity="critical",
        meaning="the hour has a partition that feed.toml does not expect, so nothing waits for its resolved ts",
        remedy="set `partitions` in feed.toml to the number of partitions that the topic has",
        allowed=("block",),
        because="the resolved ts would pass rows that have not arrived",
    ),
    "RESOLVED_TS_AHEAD": Kind(
        severity="warning",
        meaning="a resolved ts is later than its message and its hour, by more than `clock_skew_minutes`; it does not count (found by "
        "`order`, not by landing)",
        remedy="find out what wrote it; if the clocks of the archive and of TiDB differ that much (an archive whose hours are not UTC), "
        "set [policy] clock_skew_minutes",
    ),
    "COMMIT_TS_AHEAD": Kind(
        severity="warning",
        meaning="rows or statements have a commit ts later than their message and their hour, by more than `clock_skew_minutes`; no cut "
        "holds them before that time (found by `order`)",
        remedy="find out what wrote it: the rows wait until the resolved ts reaches their commit ts",
    ),
    "UNUSUAL_NUMBERS": Kind(
        severity="warning",
        meaning="rows, changes by kind, NULLs by policy or the lag of a window differ from the same hour of earlier days (found by "
        "`validate`, which compares nothing if this is ignored; docs/how-to/expectations.md has the rule)",
        remedy="look for the cause at the source; if the numbers are right, nothing: later hours are compared with them too. `history` in "
        "the table's file of expectations/ decides for one table",
    ),
    "OVERLAP_HOURS": Kind(
        severity="warning",
        but="critical where offsets are counted from names",
        meaning="offsets of the hour were already landed with an earlier hour",
        remedy="nothing, if the archiver delivered twice; where offsets come from names, check its partitioner and its handling "
        "of null values",
        allowed=("block", "warn"),
        because="where offsets are counted from names, an overlap shows that the count is wrong",
    ),
    "HOUR_NOT_CLOSED": Kind(
        severity="warning",
        but="critical where the resolved ts is not in the messages",
        meaning="the hour was landed before the archive was known to be complete for it",
        remedy="land the hour again when the archive has later objects; `closed_by` and `quiet_minutes` under [source] set what "
        "`land` waits for",
        allowed=("block", "warn"),
        because="the end of the hour may be missing",
    ),
    "GAP_AHEAD": Kind(
        severity="warning",
        meaning="object names place the hour's missing offsets in a later hour: a flush window, or clocks that differ",
        remedy="nothing, if the next hours also run: the later hour closes the gap, and until then nothing after the gap counts. If it "
        'happens often, set `hours = "timestamps"` under [source], which takes hours from the times of messages, not from folders '
        "(docs/layouts.md)",
    ),
    "SINK_INDEX": Kind(
        severity="warning",
        meaning="an index file of the storage sink is missing or does not name the newest file, or it names a file that does not exist but "
        "may still be written",
        remedy="nothing, if the sink is still writing the file (it becomes a GAP once it is certain that it is not); else look for the "
        "index file",
    ),
    "LATE_START": Kind(
        severity="warning",
        meaning="the first landed hour does not begin at offset 0",
        remedy="if the feed should begin earlier, restore the missing files and land from the first hour on",
    ),
    "UNKNOWN_OBJECT": Kind(
        severity="warning",
        meaning="an object in the hour's folder was not read, because its name does not match the layout",
        remedy="check source.layout and source.template, or move the file out of the hour's folder",
    ),
    "CHANGED_AFTER_LANDING": Kind(
        severity="warning",
        meaning="an object that was landed has other bytes now; the hour has a new generation",
        remedy="nothing, if the archiver wrote the object again with more messages; else find out who changed it. The messages of the "
        "previous generation are kept under its number",
    ),
    "LATE_FILE": Kind(
        severity="warning",
        meaning="objects appeared or disappeared after the hour was landed; the hour has a new generation",
        remedy="nothing, if no cut contains the hour yet: its run takes the new generation. If the hour is published, `tidelake late` "
        "lists the rows missing from the tables after the next cut: find out why they came late",
    ),
    "LANDED_DAMAGED": Kind(
        severity="warning",
        meaning="landed objects of the hour were deleted, cut short or changed in the lake",
        remedy="nothing for the hour: `land` restores them from the source. Find out who writes to the lake, or whether its disk fails",
    ),
    "LAYOUT_CHANGED": Kind(
        severity="warning",
        meaning="the hour was read with another layout than before; it has a new generation",
        remedy="nothing, if source.layout was corrected",
    ),
    "GAP_CLOSED": Kind(
        severity="info",
        meaning="the hour's missing offsets came with a later hour, which is landed",
        remedy='nothing: the window that ends with that hour has them. `hours = "timestamps"` under [source] takes hours from the times of '
        "messages, not from folders (docs/layouts.md)",
    ),
    "OVERLAP_SAME": Kind(
        severity="info",
        meaning="messages occur more than once with the same content",
        remedy="nothing: one copy was kept",
    ),
    "NO_OFFSETS": Kind(
        severity="info",
        meaning="the layout holds no offsets: they are counted from the number in each object's name",
        remedy="prefer a layout that holds offsets, set s3.object.tagging in the connector and `tags` here, or keep the connector from "
        "dropping and re-sorting records",
    ),
    "TOMBSTONES_LOST": Kind(
        severity="info",
        meaning="the layout loses messages without a value",
        remedy=f"nothing, because the protocol has no null values; {_KEEP_THEM}",
    ),
    "KEYS_LOST": Kind(
        severity="info",
        but="warning where the protocol needs them and objects hold none",
        meaning="the layout loses Kafka's keys, or the connector is not configured to write them",
        remedy=f"nothing, if the protocol does not need them; {_KEEP_THEM}, and with Aiven's connector the field `key`",
    ),
    "REORDERED_JSON": Kind(severity="info", meaning="the layout loses the original text of JSON values", remedy=_AS_BYTES),
    "NOT_BINARY_SAFE": Kind(severity="info", meaning="the layout loses values that are not UTF-8 text", remedy=_AS_BYTES),
    "LOSSY_LAYOUT": Kind(
        severity="info",
        meaning="the layout loses, or the connector is not configured to write: headers, timestamps, or null as distinct from empty",
        remedy="nothing, because decoding needs none of them; aiven-jsonl with all five fields (format.output.fields) keeps them",
    ),
    "LEGAL_GAPS": Kind(
        severity="info",
        meaning="the topic has no messages at these offsets: transaction markers, aborted messages, compaction (live topics, and "
        "archives by `tidelake archive`)",
        remedy="nothing, if producers use transactions; a topic that is compacted loses changes: set its cleanup.policy to delete",
    ),
    "EMPTY": Kind(severity="info", meaning="the archive has nothing for the hour", remedy="nothing, if the feed was idle"),
}

_ANOTHER_LOG = "the topic was recreated, or belongs to another cluster: land it as a feed with a new name, or archive it below a new uri"

REFUSALS = {  # of live topics, by `land` and `archive`
    "OFFSETS_WENT_BACK": Refusal(meaning="a partition ends before offsets that are already landed or archived", remedy=_ANOTHER_LOG),
    "TOPIC_RECREATED": Refusal(
        meaning="Kafka's id of the topic differs from the id of the topic whose offsets are landed or archived", remedy=_ANOTHER_LOG
    ),
}
