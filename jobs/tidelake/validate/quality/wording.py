"""Texts for outcomes of Great Expectations: what was expected, what was found, and a few examples."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidelake.history.contract import Expectation
from tidelake.io.texts import plural
from tidelake.validate.quality.validation import RuleOutcome, quiet

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation as GxExpectation

EXAMPLES = 5
_CHARACTERS = 120
_SENTENCE = 400
_SQL = "unexpected_rows_expectation"
_LISTED = re.compile(r"(\$\w+_\d+) (?=\$\w+_\d+)")  # `$v__0 $v__1`: members of a list


def rule(e: Expectation) -> str:
    """Return the user's description, else the type's words."""
    return str(e.arguments.get("description") or e.type.removeprefix("expect_").replace("_", " "))


def expected(e: Expectation, built: GxExpectation) -> str:
    """Return Great Expectations' sentence if there is one: `price values to be greater than or equal to 0`. Else the arguments."""
    condition = e.arguments.get("row_condition")
    with quiet():
        plain = built.copy(update={"row_condition": None}) if condition else built  # the condition is worded here
        plain.render()
    value = plain.rendered_content[0].value if plain.rendered_content else None
    template, params = getattr(value, "template", None) or "", getattr(value, "params", None) or {}
    listed = _LISTED.sub(r"\1, ", template)
    said = string.Template(listed).safe_substitute({name: _parameter(name, p) for name, p in params.items()})
    if not said or said.startswith(e.type):
        return arguments(e)
    where = f" where {condition}" if condition else ""
    said = " ".join(said.replace("<pre>", "").replace("</pre>", "").split()).rstrip(".").replace(" must ", " to ", 1)
    return _clipped(said.replace("Must have", "to have", 1) + where, _SENTENCE)


def arguments(e: Expectation) -> str:
    """Return the arguments as written: `column price, min_value 0`."""
    return ", ".join(f"{name} {show(value)}" for name, value in e.arguments.items() if name not in ("description", "notes"))


def observed(e: Expectation, outcome: RuleOutcome) -> str:
    """Return what was found: counts, a value, or why the expectation could not be validated."""
    result = outcome.result
    if outcome.error is not None:
        return f"could not be judged: {outcome.error}"
    if "element_count" in result:
        return _shares(result, "value" if "column" in e.arguments else "row")
    if result.get("observed_value") is not None:
        if e.type == _SQL:
            return plural(int(result["observed_value"]), "row")
        return show(result["observed_value"]) + _mismatches(result)
    distinct = _distinct(result)
    if distinct:
        return distinct
    return "no value" if "observed_value" in result else "as expected" if outcome.success else "not as expected"


def unexpected(e: Expectation, outcome: RuleOutcome) -> int:
    """Return the number of rows or values that break the expectation; 0 if it does not count them."""
    return int(outcome.result.get("observed_value" if e.type == _SQL else "unexpected_count") or 0)


def examples(outcome: RuleOutcome) -> list[str]:
    """Return a few distinct values that break the expectation."""
    result = outcome.result
    counted = [c["value"] for c in result.get("partial_unexpected_counts") or () if isinstance(c, Mapping) and "value" in c]
    found = counted or result.get("partial_unexpected_list") or result.get("partial_missing_list") or ()
    return [] if outcome.success else list(dict.fromkeys(show(value) for value in found))[:EXAMPLES]


def remedy(e: Expectation) -> str:
    """Return what to do about a failure, with the setting that lets a critical one pass."""
    said = f"correct the source or the rule ({e.origin})"
    return f'{said}. To publish such rows with a warning, set severity = "warning" in the rule' if e.severity == "critical" else said


def show(value: Any) -> str:
    """Format a value on one line: numbers with separators, NULL, bytes as hex, at most 120 characters."""
    return _clipped(_text(value), _CHARACTERS)


def _text(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool() | str():
            return str(value)
        case int() | float():
            return _number(value)
        case bytes() | bytearray():
            return f"0x{value.hex()}"
        case Mapping():
            return ", ".join(f"{k} {_text(v)}" for k, v in value.items())
        case list() | tuple() | set():
            return ", ".join(_text(v) for v in value)
    return str(value)


def _number(value: float) -> str:
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}" if abs(value) < 1e15 else f"{value:.17g}"
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.2f}"


def _parameter(name: str, parameter: Any) -> str:
    """A value inside the sentence. Members of a set are quoted because they can contain spaces and commas."""
    value = parameter.get("value") if isinstance(parameter, Mapping) else parameter
    return f"“{value}”" if name.startswith("v__") and isinstance(value, str) else show(value)


def _clipped(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[:characters]}…"


def _shares(result: Mapping[str, Any], noun: str) -> str:
    rows, bad, nulls = (int(result.get(key) or 0) for key in ("element_count", "unexpected_count", "missing_count"))
    judged = rows - nulls
    if not judged:
        return f"only NULL, in {plural(rows, 'row')}" if rows else "no rows"
    said = f"{plural(bad, f'bad {noun}')} among {judged:,} ({_percent(bad, judged)})" if bad else f"no bad {noun} among {judged:,}"
    return said + (f"; {nulls:,} NULL not judged" if nulls else "")


def _percent(part: int, whole: int) -> str:
    percent = 100 * part / whole
    return "less than 0.01 %" if percent < 0.01 else f"{percent:.3g} %" if percent < 99.95 or part == whole else "more than 99.9 %"


def _mismatches(result: Mapping[str, Any]) -> str:
    """Additional text of an expectation about the set of columns."""
    details = (result.get("details") or {}).get("mismatched")
    return "".join(f"; {name}: {show(v)}" for name, v in details.items() if v) if isinstance(details, Mapping) else ""


def _distinct(result: Mapping[str, Any]) -> str:
    """Text about sets of distinct values."""
    parts = [
        f"{plural(int(result[key]), 'distinct value')} {word}"
        for key, word in (("unexpected_count", "not expected"), ("missing_count", "missing"))
        if key in result
    ]
    return ", ".join(parts)
