"""What expectations are judged from: every type of the installed Great Expectations has one place, which docs show."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.checkout import CHECKOUT
from tests.lake import lakes
from tidelake.errors import ConfigError
from tidelake.history.contract import Expectation
from tidelake.validate.quality.applicable import check_rules
from tidelake.validate.quality.basis import BASIS, REFUSED, as_regex, basis_of
from tidelake.validate.quality.expectations import build
from tidelake.validate.quality.judge import judge_measures
from tidelake.validate.quality.judge_counts import ChangeCounts, count_measures
from tidelake.validate.quality.validation import quiet, validate

ROWS = "expect_table_row_count_to_be_between"
ORIGIN = "expectations/shop.orders.toml: [[expect]] 2"


def expectation(kind: str, **arguments: Any) -> Expectation:
    return Expectation(table="shop.orders", type=kind, arguments=arguments, severity="critical", origin=ORIGIN)


def test_every_expectation_of_great_expectations_is_judged_from_one_thing_or_refused() -> None:
    with quiet():
        import great_expectations.expectations  # noqa: F401 - registers the types
        from great_expectations.expectations.registry import list_registered_expectation_implementations

        installed = list_registered_expectation_implementations()
    assert len(installed) >= 59
    assert Counter([*BASIS, *REFUSED]) == Counter(installed)


def test_docs_list_every_expectation_under_what_it_is_judged_from() -> None:
    page = (CHECKOUT / "docs" / "how-to" / "expectations.md").read_text()
    table = page[page.index("| judged from |") :].partition("\n\n")[0]
    shown = {cells[1].strip(): re.findall(r"`(\w+)`", cells[2]) for line in table.splitlines()[2:] if (cells := line.split("|"))}
    named = {
        "the table's columns": ["columns"],
        "counts of the window": ["counts"],
        "all new rows": ["rows", "patterns"],
        "a sample": ["sample"],
    }
    for words, bases in named.items():
        assert sorted(shown.pop(words)) == sorted(k for k, b in BASIS.items() if b in bases), words
    assert sorted(shown.pop("refused")) == sorted(REFUSED)
    assert shown == {}


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_a_refusal_names_the_file_the_table_the_expectation_why_and_what_to_use_instead(kind: str) -> None:
    with pytest.raises(ConfigError) as error:
        build(expectation(kind))
    assert str(error.value) == (
        f"CONFIG: {ORIGIN}: type: {kind} of shop.orders cannot be judged: {REFUSED[kind].why}; use {REFUSED[kind].instead}"
    )


def test_an_expectation_that_cannot_be_judged_is_refused_before_the_first_hour(tmp_path: Path) -> None:
    feed = lakes.feed(tmp_path)
    (feed.folder / "expectations").mkdir(parents=True)
    (feed.folder / "expectations" / "d.t.toml").write_text('[[expect]]\ntype = "expect_query_results_to_match_comparison"\n')
    with pytest.raises(ConfigError, match=r"expect_query_results_to_match_comparison of d\.t cannot be judged: it compares with a query"):
        check_rules(feed)


def test_files_are_checked_without_importing_great_expectations() -> None:
    code = "import sys, tidelake.validate.quality.basis; print('great_expectations' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("condition", "basis"),
    [
        (None, "counts"),
        ("_change_type = 'DELETE'", "counts"),
        (" _change_type='UPDATE_AFTER' ", "counts"),
        ("_change_type = 'MERGE'", "rows"),
        ("_change_type = 'DELETE' AND price > 0", "rows"),
        ("price > 0", "rows"),
    ],
)
def test_a_number_of_rows_is_counted_unless_its_condition_is_about_rows(condition: str | None, basis: str) -> None:
    assert (
        basis_of(expectation(ROWS, min_value=1) if condition is None else expectation(ROWS, min_value=1, row_condition=condition)) == basis
    )


@pytest.mark.parametrize(
    ("pattern", "escape", "matches", "others"),
    [
        ("a%", None, ["a", "abc", "a\nb"], ["", "ba", "A"]),
        ("a_c", None, ["abc", "a\nc"], ["ac", "abbc"]),
        ("50!%", "!", ["50%"], ["50", "500", "50!%"]),
        ("a!!b", "!", ["a!b"], ["a!!b"]),
        (r"a\%", None, ["a\\", "a\\b"], ["a%"]),
        ("a.c", None, ["a.c"], ["abc"]),
        ("[a]+", None, ["[a]+"], ["aa"]),
    ],
)
def test_a_like_pattern_is_judged_as_a_regular_expression_for_the_whole_value(
    pattern: str, escape: str | None, matches: list[str], others: list[str]
) -> None:
    rule = expectation("expect_column_values_to_match_like_pattern", column="v", like_pattern=pattern, mostly=0.5, escape=escape)
    regex = as_regex(rule)
    assert (regex.type, regex.arguments["mostly"], set(regex.arguments)) == (
        "expect_column_values_to_match_regex",
        0.5,
        {"column", "regex", "mostly"},
    )
    python = re.compile(regex.arguments["regex"].replace(r"\z", r"\Z"))
    assert [v for v in (*matches, *others) if python.search(v)] == matches


def test_lists_of_like_patterns_keep_their_other_arguments() -> None:
    several = as_regex(
        expectation("expect_column_values_to_match_like_pattern_list", column="v", like_pattern_list=["a%", "_b"], match_on="all")
    )
    assert several.type == "expect_column_values_to_match_regex_list"
    assert several.arguments == {"column": "v", "match_on": "all", "regex_list": [r"\A(?s:a.*)\z", r"\A(?s:.b)\z"]}
    none = as_regex(expectation("expect_column_values_to_not_match_like_pattern_list", column="v", like_pattern_list=["a%"]))
    assert (none.type, none.arguments["regex_list"]) == ("expect_column_values_to_not_match_regex_list", [r"\A(?s:a.*)\z"])
    same = expectation("expect_column_values_to_match_regex", column="v", regex="a")
    assert as_regex(same) is same


@pytest.mark.parametrize("rows", [0, 4, 5, 6, 10, 11])
@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (ROWS, {"min_value": 5}),
        (ROWS, {"max_value": 5}),
        (ROWS, {"min_value": 5, "max_value": 10}),
        (ROWS, {"min_value": 5, "max_value": 10, "strict_min": True}),
        (ROWS, {"min_value": 5, "max_value": 10, "strict_max": True}),
        ("expect_table_row_count_to_equal", {"value": 5}),
    ],
)
def test_counted_rows_are_judged_as_great_expectations_judges_a_frame_of_them(kind: str, arguments: dict[str, Any], rows: int) -> None:
    import pandas as pd

    rule = expectation(kind, **arguments)
    measures, refused = count_measures([rule], ChangeCounts(new_rows=rows, by_type={}))
    (check,) = judge_measures(measures)
    (outcome,) = validate("pandas", pd.DataFrame(index=pd.RangeIndex(rows)), [build(rule)])
    assert outcome.error is None
    assert (check.success, refused) == (outcome.success, [])


def test_counts_are_of_new_rows_or_of_changes_by_type() -> None:
    counts = ChangeCounts(new_rows=7, by_type={"INSERT": 5, "UPDATE_AFTER": 2, "UPDATE_BEFORE": 2, "DELETE": 0})
    rules = [
        expectation(ROWS, max_value=6),
        expectation(ROWS, min_value=1, row_condition="_change_type = 'DELETE'", description="some are deleted"),
        expectation(ROWS, max_value=5, row_condition="_change_type = 'INSERT'"),
    ]
    new, deleted, inserted = judge_measures(count_measures(rules, counts)[0])
    assert (new.success, new.observed, new.expected) == (False, "7 rows", "to have less than or equal to 6 rows")
    assert (
        new.remedy
        == f'correct the source or the rule ({ORIGIN}). To publish such rows with a warning, set severity = "warning" in the rule'
    )
    assert (deleted.success, deleted.observed, deleted.rule) == (False, "0 rows", "some are deleted")
    assert deleted.expected == "some are deleted where _change_type = 'DELETE'"
    assert (inserted.success, inserted.origin) == (True, ORIGIN)


def test_a_rule_about_numbers_with_a_wrong_argument_is_a_failed_check() -> None:
    measures, (check,) = count_measures([expectation(ROWS, min_valu=1)], ChangeCounts(new_rows=1, by_type={}))
    assert (measures, check.success, check.severity) == ([], False, "critical")
    assert "min_valu: expect_table_row_count_to_be_between has no such argument" in check.observed
