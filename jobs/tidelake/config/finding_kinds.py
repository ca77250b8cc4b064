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


_UP_TO_THE_GAP = "then the resolved ts counts up to the gap only"
_AS_BYTES = "set value.converter = ByteArrayConverter in the connector, and the layout for it here"
_KEEP_THEM = "prefer a layout that keeps them"

KINDS = {  # most serious first
    "OVERLAP_CONFLICT": Kind(
        severity="critical",
        meaning="an offset is there with different contents; none of them is landed",
        remedy="find out which of the objects is wrong, move it out of the archive and land the hour again",
        allowed=("block", "warn"),
        because="messages are left out",
    ),
    "GAP": Kind(
        severity="critical",
        but='warning with `on_gap = "warn"`',
        meaning="offsets are missing inside the hour, or between it and the hours before, and no landed hour or object's name of the "
        "24 hours after it has them; of a storage sink, also the newest files of a folder, of which its index tells",
        remedy=f'bring back the missing file and land the hour again, or set [policy] on_gap = "warn": {_UP_TO_THE_GAP}',
    ),
    "EXPIRED": Kind(
        severity="critical",
        but='warning with `on_gap = "warn"`',
        meaning="the topic's retention deleted messages before they were landed (live topics)",
        remedy="give the topic a longer retention and land in time; bring the messages back through an archive of them, or set [policy] "
        f'on_gap = "warn": {_UP_TO_THE_GAP}',
    ),
    "MISSING_PARTITION": Kind(
        severity="critical",
        but='warning with `on_gap = "warn"`; info where the resolved ts does not stand in the messages',
        meaning="the hour has no message of a partition that feed.toml expects",
        remedy="find out why the archiver wrote nothing for it (an idle partition still receives resolved events), bring back "
        f'its files and land the hour again, or set [policy] on_gap = "warn": {_UP_TO_THE_GAP}',
    ),
    "UNEXPECTED_PARTITION": Kind(
        severity="critical",
        meaning="the hour has a partition that feed.toml does not expect, so nothing waits for its resolved ts",
        remedy="set `partitions` in feed.toml to the number of partitions that the topic has",
        allowed=("block",),
        because="the resolved ts would pass rows that are still to come",
    ),
    "RESOLVED_TS_AHEAD": Kind(
        severity="warning",
        meaning="a resolved ts is later than its message and its hour, by more than `clock_skew_minutes`; it does not count (found by "
        "`order`, not by landing)",
        remedy="find out what wrote it; if the clocks of the archive and of TiDB are so far apart (an archive whose hours are not UTC), "
        "set [policy] clock_skew_minutes",
    ),
    "COMMIT_TS_AHEAD": Kind(
        severity="warning",
        meaning="rows or statements have a commit ts later than their message and their hour, by more than `clock_skew_minutes`; no cut "
        "holds them before that time (found by `order`)",
        remedy="find out what wrote it: the rows wait until the resolved ts reaches their commit ts",
    ),
    "OVERLAP_HOURS": Kind(
        severity="warning",
        but="critical where offsets are counted from names",
        meaning="offsets of the hour were landed with an earlier hour already",
        remedy="nothing, if the archiver delivered twice; where offsets come from names, check its partitioner and what it does with nulls",
        allowed=("block", "warn"),
        because="where offsets are counted from names, it says that they are counted wrong",
    ),
    "HOUR_NOT_CLOSED": Kind(
        severity="warning",
        but="critical where the resolved ts does not stand in the messages",
        meaning="the hour was landed before it was certain that the archive has all of it",
        remedy="land the hour again when the archive went on; `closed_by` and `quiet_minutes` under [source] say what is waited for",
        allowed=("block", "warn"),
        because="the end of the hour may be missing",
    ),
    "GAP_AHEAD": Kind(
        severity="warning",
        meaning="offsets that the hour lacks lie, by the names of objects, in an hour after it: a flush window, or a clock that differs",
        remedy="nothing, if the hours after it run, too: that one closes the hole, and nothing behind the hole counts before. Where it "
        'comes often, `hours = "timestamps"` under [source] ends it: hours by the times of messages, not by folders (docs/layouts.md)',
    ),
    "SINK_INDEX": Kind(
        severity="warning",
        meaning="an index of the storage sink is missing, or names another file than the newest; one that is not there only as long as it "
        "may still be written",
        remedy="nothing, if the sink writes the file now: it is a GAP as soon as it is certain that it does not; else look for the index",
    ),
    "LATE_START": Kind(
        severity="warning",
        meaning="the first landed hour does not begin at offset 0",
        remedy="if the feed should begin earlier, bring back the missing files, and land from the first hour on",
    ),
    "UNKNOWN_OBJECT": Kind(
        severity="warning",
        meaning="an object in the hour's folder was not read, as its name is none of the layout's",
        remedy="check source.layout and source.template, or move the file out of the hour's folder",
    ),
    "CHANGED_AFTER_LANDING": Kind(
        severity="warning",
        meaning="an object that was landed has other bytes now; the hour has a new generation",
        remedy="nothing, if the archiver wrote the object again with more in it; else find out who changed it. What the generation "
        "before held stays under its number",
    ),
    "LATE_FILE": Kind(
        severity="warning",
        meaning="objects came, or went, after the hour was landed; the hour has a new generation",
        remedy="nothing, if no cut holds the hour yet: its run takes the new generation. Of a published hour, `tidelake late` lists "
        "the rows that the tables lack, after the next cut: find out why they came late",
    ),
    "LANDED_DAMAGED": Kind(
        severity="warning",
        meaning="landed objects of the hour were deleted, cut short or changed in the lake",
        remedy="nothing for the hour: `land` puts them back from the source. Find out who writes to the lake, or whether its disk fails",
    ),
    "LAYOUT_CHANGED": Kind(
        severity="warning",
        meaning="the hour was read with another layout than before; it has a new generation",
        remedy="nothing, if source.layout was corrected",
    ),
    "GAP_CLOSED": Kind(
        severity="info",
        meaning="offsets that the hour lacks came with an hour after it, which is landed",
        remedy='nothing: the window that ends with that hour has them. `hours = "timestamps"` under [source] takes hours from the times of '
        "messages, not from folders (docs/layouts.md)",
    ),
    "OVERLAP_SAME": Kind(
        severity="info",
        meaning="messages were there more than once with the same content",
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
        remedy=f"nothing, as the protocol has no null values; {_KEEP_THEM}",
    ),
    "KEYS_LOST": Kind(
        severity="info",
        but="warning where the protocol needs them and objects hold none",
        meaning="the layout loses Kafka's keys, or the connector was not told to write them",
        remedy=f"nothing, if the protocol does not need them; {_KEEP_THEM}, and with Aiven's connector the field `key`",
    ),
    "REORDERED_JSON": Kind(severity="info", meaning="the layout loses how JSON was written", remedy=_AS_BYTES),
    "NOT_BINARY_SAFE": Kind(severity="info", meaning="the layout loses values that are no UTF-8 text", remedy=_AS_BYTES),
    "LOSSY_LAYOUT": Kind(
        severity="info",
        meaning="the layout loses something else, or the connector was not told to write it: headers, timestamps, null against empty",
        remedy="nothing, as decoding needs none of it; aiven-jsonl with all five fields (format.output.fields) keeps it",
    ),
    "LEGAL_GAPS": Kind(
        severity="info",
        meaning="the topic has no messages at these offsets: markers of transactions, aborted messages, compaction (live topics, and "
        "archives by `tidelake archive`)",
        remedy="nothing, if producers use transactions; a topic that is compacted loses changes: set its cleanup.policy to delete",
    ),
    "EMPTY": Kind(severity="info", meaning="the archive has nothing for the hour", remedy="nothing, if the feed was idle"),
}

_ANOTHER_LOG = "the topic was made anew, or it is another cluster's: land it as a feed of another name, archive it below another uri"

REFUSALS = {  # of live topics, by `land` and `archive`
    "OFFSETS_WENT_BACK": Refusal(meaning="a partition ends before offsets that are landed, or archived", remedy=_ANOTHER_LOG),
    "TOPIC_RECREATED": Refusal(
        meaning="Kafka's id of the topic is not that of the one whose offsets are landed, or archived", remedy=_ANOTHER_LOG
    ),
}
