"""The policies of a feed for rejected, late, missing and invalid data: [policy] of feed.toml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from tidelake.config.finding_kinds import KINDS, SEVERITIES, Action, Severity
from tidelake.config.source import VARIABLE

ZeroDate = Literal["null", "string", "reject"]
InvalidValues = Literal["null", "reject"]  # values that their type does not hold; a column may also use "string"
HandleOnly = Literal["quarantine", "accept"]  # rows for which only the handle was sent
BeforeImages = Literal["off", "sample", "all"]  # which old rows in changes are compared with the rows that they replace
SAMPLE = 16  # one of this many keys is compared, others in every window
KEY_BYTES = 16  # least length of the key that masks hash with
_MASK = re.compile(r"drop|null|hash|truncate\((0|[1-9][0-9]{0,6})\)")
_WIDE = re.compile(r"string|decimal\(38,([12]?[0-9]|3[0-8])\)")


def _wide_decimal(value: object) -> object:
    if not isinstance(value, str) or not _WIDE.fullmatch(value):
        raise ValueError('"string" or "decimal(38,s)" with s from 0 to 38')
    return value


def _mask(value: object) -> object:
    if not isinstance(value, str) or not _MASK.fullmatch(value):
        raise ValueError('"drop", "null", "hash" or "truncate(n)"')
    return value


WideDecimal = Annotated[str, BeforeValidator(_wide_decimal)]
Mask = Annotated[str, BeforeValidator(_mask)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRules:
    """Rules for converting the values of one column (docs/types.md).

    zero_date: dates whose month or day is zero. wide_decimal: the lake type of a DECIMAL of more than 38 digits. invalid_values: values
    that the lake type does not hold without loss; with `string` the column is text and has none. mask: docs/masking.md.
    """

    zero_date: ZeroDate = "null"
    wide_decimal: str = "string"
    invalid_values: Literal["null", "string", "reject"] = "reject"
    mask: str | None = None


PLAIN = ValueRules()


class Policy(BaseModel):
    """A feed's policies (docs/architecture.md 6 to 8)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    on_reject: Literal["block", "publish_incomplete"] = "block"
    on_gap: Literal["block", "warn"] = "block"
    on_late: Literal["block", "publish_incomplete"] = "publish_incomplete"  # rows that came after the cut that should hold them
    incomplete: Literal["publish", "block"] = "publish"  # whether an incomplete window is published with its reasons, or blocked
    on_finding: dict[str, Action] = {}  # action by finding code; defaults: docs/findings.md
    clock_skew_minutes: Annotated[int, Field(strict=True, ge=0, le=10_000)] = 10  # longest time of a resolved ts ahead of its message
    wait_hours: Annotated[int, Field(strict=True, ge=1)] = 24  # longest time that a row of Simple may wait for its table's schema
    decide_hours: Annotated[int, Field(strict=True, ge=0, le=720)] = 12  # how long Airflow waits for a decision; 0: it does not ask
    ddl: Literal["evolve", "strict", "ignore"] = "evolve"
    ignore_ddl: tuple[Annotated[int, Field(strict=True)], ...] = ()  # commit ts of statements to skip
    zero_date: ZeroDate = "null"
    wide_decimal: WideDecimal = "string"  # the lake type of a DECIMAL of more than 38 digits
    invalid_values: InvalidValues = "reject"  # values that the lake type does not hold without loss: docs/types.md
    checksum: Literal["warn", "quarantine"] = "warn"  # rows that do not match their checksum
    handle_only: HandleOnly = "quarantine"
    before_images: BeforeImages = "sample"  # "all" costs more: docs/before-images.md
    on_before_image: Literal["warn", "block"] = "warn"  # old values that differ from the lake's
    mask_at: Literal["decode", "order"] = "decode"  # stage that masks columns: before the events table is written, or after
    mask_key: str | None = Field(default=None, repr=False)  # key of mask = "hash"; always a variable

    @field_validator("mask_key")
    @classmethod
    def _is_long_enough(cls, key: str | None) -> str | None:
        if key is not None and not VARIABLE.fullmatch(key) and len(key.encode()) < KEY_BYTES:
            raise ValueError(f"the variable should hold {KEY_BYTES} bytes or more")
        return key

    @field_validator("on_finding")
    @classmethod
    def _is_safe(cls, on_finding: dict[str, Action]) -> dict[str, Action]:
        for code, action in on_finding.items():
            if code not in KINDS:
                raise ValueError(f"unknown finding {code}; allowed: {', '.join(KINDS)}")
            if action not in KINDS[code].allowed:
                allowed = " or ".join(map(repr, KINDS[code].allowed))
                raise ValueError(f"{code} should be {allowed}, as {KINDS[code].because}; found {action!r}")
        return on_finding

    @property
    def gap_severity(self) -> Severity:
        """The severity of a gap in the offsets, unless `on_finding` sets it."""
        return SEVERITIES[self.on_gap]

    def severity(self, code: str, default: Severity) -> Severity:
        """Return the severity of a finding for this feed. default: the severity if `on_finding` does not have its code."""
        return SEVERITIES[self.on_finding[code]] if code in self.on_finding else default


class ColumnPolicy(BaseModel):
    """Policies of one column, under [columns."db.table".name]; members left out take the feed's. invalid_values = "string": the column is
    text.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    zero_date: ZeroDate | None = None
    wide_decimal: WideDecimal | None = None
    invalid_values: Literal["null", "string", "reject"] | None = None
    mask: Mask | None = None
