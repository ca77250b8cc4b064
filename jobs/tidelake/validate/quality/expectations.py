"""Converts expectations of the users' files to Great Expectations objects; a ConfigError states what is wrong and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tidelake.errors import ConfigError
from tidelake.history.contract import Expectation
from tidelake.validate.quality.basis import REFUSED, as_regex, refuse
from tidelake.validate.quality.validation import quiet

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation as GxExpectation

# Arguments that Tidelake sets itself, or that have no meaning in a file.
_OURS = frozenset({"id", "meta", "severity", "result_format", "catch_exceptions", "rendered_content", "windows", "batch_id"})
# Optional arguments of which a type needs at least one: without any, it passes with all data.
_LIMITS = frozenset({"min_value", "max_value", "regex", "type_list", "column_set", "column_list", "partition_object"})


def build(e: Expectation) -> GxExpectation:
    """Return the Great Expectations object of an expectation. Raises ConfigError."""
    with quiet():
        kind = _implementation(e)
        arguments = dict(e.arguments)
        fields = {name for name in kind.__fields__ if name not in _OURS}
        _check_names(e, arguments, fields)
        _check_values(e, arguments, fields)
        if isinstance(arguments.get("row_condition"), str):
            arguments.setdefault("condition_parser", "spark")
        return _instance(e, kind, arguments)


def runnable(e: Expectation) -> GxExpectation:
    """Return the object that judges a valid expectation: LIKE patterns as regular expressions. Raises ConfigError."""
    return build(as_regex(e))


def check_expectation(e: Expectation) -> None:
    """Check, without data, whether an expectation can be validated.

    Raises:
        ConfigError: It cannot; the message has the place, what was found and what is allowed.
    """
    build(e)


def _implementation(e: Expectation) -> type[GxExpectation]:
    import great_expectations.expectations  # noqa: F401 - registers the types
    from great_expectations.expectations.registry import get_expectation_impl, list_registered_expectation_implementations

    refuse(e)
    known = [name for name in list_registered_expectation_implementations() if name not in REFUSED]
    if e.type in known:
        return get_expectation_impl(e.type)
    near = difflib.get_close_matches(e.type, known, n=3)
    remedy = f"did you mean {' or '.join(near)}?" if near else "use a type of Great Expectations' gallery"
    raise ConfigError(f"{e.origin}: type: found {e.type!r}, which Great Expectations does not know", remedy=remedy)


def _check_names(e: Expectation, arguments: Mapping[str, Any], fields: set[str]) -> None:
    for name in arguments:
        if name in fields:
            continue
        near = difflib.get_close_matches(name, fields, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(f"{e.origin}: {name}: {e.type} has no such argument", remedy=f"{hint}allowed: {', '.join(sorted(fields))}")
    limits = fields & _LIMITS
    if limits and not limits & set(arguments):
        raise ConfigError(
            f"{e.origin}: {e.type} without {' and '.join(sorted(limits))} expects nothing", remedy="give at least one of them"
        )


def _check_values(e: Expectation, arguments: Mapping[str, Any], fields: set[str]) -> None:
    for name, value in arguments.items():
        if isinstance(value, dict) and "$PARAMETER" in value:
            raise ConfigError(f"{e.origin}: {name}: found a parameter of a checkpoint", remedy="write the value itself")
        if name in ("min_value", "max_value") and isinstance(value, int) and int(float(value)) != value:
            raise ConfigError(
                f"{e.origin}: {name}: found {value}, which Great Expectations would compare as {float(value):.17g}",
                remedy="use a number that a double holds exactly",
            )
    if arguments.get("condition_parser") == "pandas":
        raise ConfigError(f"{e.origin}: condition_parser: found 'pandas'", remedy="write the row_condition in Spark SQL")
    query = arguments.get("unexpected_rows_query")
    if isinstance(query, str) and "{batch}" not in query:
        raise ConfigError(f"{e.origin}: unexpected_rows_query: found no {{batch}}", remedy="write SELECT … FROM {batch} WHERE …")


def _instance(e: Expectation, kind: type[GxExpectation], arguments: Mapping[str, Any]) -> GxExpectation:
    from great_expectations.compatibility.pydantic import ValidationError
    from great_expectations.expectations.metadata_types import FailureSeverity

    try:
        return kind(**arguments, severity=FailureSeverity(e.severity))
    except ValidationError as error:
        said = "; ".join(_complaints(error.errors(), arguments))
        required = sorted(name for name, field in kind.__fields__.items() if field.required)
        remedy = f"{e.type} needs {', '.join(required)}" if required else f"see Great Expectations' page of {e.type}"
        raise ConfigError(f"{e.origin}: {said}", remedy=remedy) from None
    except (TypeError, ValueError, KeyError) as error:  # some types raise these themselves
        raise ConfigError(f"{e.origin}: {e.type}: {error}") from error


def _complaints(errors: list[Any], arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence per argument; pydantic reports one for every type that the argument could have."""
    wrong: dict[str, list[str]] = {}
    for error in errors:
        wrong.setdefault(str(error["loc"][0]), []).append(error["msg"])
    wanted = {name: messages for name, messages in wrong.items() if name != "__root__"} or wrong
    for name, messages in wanted.items():
        said = " or ".join(dict.fromkeys(m for m in messages if not m.endswith("valid dict"))) or messages[0]
        if name == "__root__":
            yield said
        elif name in arguments:
            yield f"{name}: found {arguments[name]!r}: {said}"
        else:
            yield f"{name}: missing"
