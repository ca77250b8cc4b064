"""Expectations and results as a project of Great Expectations, which loads what was written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.validate.facts import HOUR, check, published
from tests.validate.test_bases_on_spark import ARGUMENTS
from tidelake.errors import ConfigError
from tidelake.history.contract import Expectation
from tidelake.validate.quality.basis import BASIS
from tidelake.validate.quality.expectations import build
from tidelake.validate.quality.facts import HourFacts
from tidelake.validate.quality.gx_project import Exported, export, suite_name
from tidelake.validate.quality.judge import expectation_check
from tidelake.validate.quality.validation import RuleOutcome, quiet
from tidelake.validate.quality.verdict import Check
from tidelake.validate.quality.wording import expected

BETWEEN = "expect_column_values_to_be_between"
ROWS = {
    "unexpected_index_column_names": ["id"],
    "partial_unexpected_index_list": [{"id": 7, "price": "-1.50"}],
    "partial_unexpected_list": ["-1.50"],
}


def rule(number: int, kind: str = BETWEEN, table: str = "shop.orders", **arguments: Any) -> Expectation:
    given = arguments or {"column": "price", "min_value": 0}
    return Expectation(
        table=table, type=kind, arguments=given, severity="warning", origin=f"/here/expectations/{table}.toml: [[expect]] {number}"
    )


def judged(e: Expectation, *, success: bool, **result: Any) -> Check:
    """The check of a rule, made where the files are in another folder."""
    made = expectation_check(
        replace(e, origin=e.origin.replace("/here/", "/opt/")), expected(e, build(e)), RuleOutcome(success=success, result=result)
    )
    return made


def hour(*checks: Check) -> HourFacts:
    return published(checks=[check(), *checks])


def exported(folder: Path, rules: list[Expectation], facts: HourFacts | None, **more: Any) -> Exported:
    return export(folder, "shop", rules, facts, **({"docs": False} | more))


def loaded(folder: Path) -> Any:
    """The project as Great Expectations opens it."""
    with quiet():
        from great_expectations import get_context

        return get_context(mode="file", project_root_dir=str(folder))


def results(context: Any) -> dict[str, Any]:
    keys = context.validation_results_store.list_keys()
    return {k.expectation_suite_identifier.name: context.validation_results_store.get(k) for k in keys}


def test_great_expectations_loads_the_suites_and_the_results_of_an_hour(tmp_path: Path) -> None:
    rules = [
        rule(1),
        rule(2, "expect_table_row_count_to_be_between", min_value=1, row_condition="_change_type = 'DELETE'"),
        rule(1, "expect_column_values_to_not_be_null", table="`a.b`.t", column="id"),
    ]
    bad = judged(rules[0], success=False, element_count=1320, missing_count=20, unexpected_count=3, partial_unexpected_list=["-1.50"])
    bad = Check.model_validate(bad.model_dump() | {"result": ROWS})
    done = exported(tmp_path, rules, hour(bad, judged(rules[1], success=True, observed_value=12)))
    assert (done.suites, done.results, done.changed, done.docs) == (["shop.shop.orders", suite_name("shop", "`a.b`.t")], 2, [], None)

    context = loaded(tmp_path)
    with quiet():
        suites = {s.name: s for s in context.suites.all()}
        kept = results(context)
    assert sorted(suites) == sorted(done.suites)
    suite = suites["shop.shop.orders"]
    assert [(e.expectation_type, e.severity.value) for e in suite.expectations] == [(r.type, "warning") for r in rules[:2]]
    with quiet():
        assert [e.configuration.kwargs for e in suite.expectations] == [build(r).configuration.kwargs for r in rules[:2]]
    assert suite.meta["tidelake"] == {"feed": "shop", "table": "shop.orders"}

    (result,) = kept.values()
    assert (result.success, result.suite_name) == (False, "shop.shop.orders")
    assert result.statistics == {
        "evaluated_expectations": 2,
        "successful_expectations": 1,
        "unsuccessful_expectations": 1,
        "success_percent": 50.0,
    }
    assert result.meta["run_id"]["run_name"] == HOUR
    assert result.meta["tidelake"]["cut"] == 12
    assert result.meta["active_batch_definition"]["data_asset_name"] == "shop.orders"
    first, second = result.results
    assert first.expectation_config.type == BETWEEN
    assert first.result == {
        "element_count": 1320,
        "missing_count": 20,
        "missing_percent": pytest.approx(1.515, abs=0.001),
        "unexpected_count": 3,
        "unexpected_percent": pytest.approx(0.2308, abs=0.0001),
        "unexpected_percent_nonmissing": pytest.approx(0.2308, abs=0.0001),
        "unexpected_percent_total": pytest.approx(0.2273, abs=0.0001),
        **ROWS,
    }
    assert first.meta["tidelake"]["observed"] == "3 bad values among 1,300 (0.231 %); 20 NULL not judged"
    assert (second.success, second.result) == (True, {"observed_value": 12})


def test_an_export_repeated_writes_the_same_files_and_one_result(tmp_path: Path) -> None:
    rules = [rule(1), rule(2, column="tax", max_value=9)]

    def files() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in tmp_path.rglob("*.json")}

    facts = hour(*(judged(r, success=True, element_count=5) for r in rules))
    exported(tmp_path, rules, facts)
    first = files()
    exported(tmp_path, rules, facts)
    assert files() == first
    assert len(first) == 2


def test_a_result_whose_rule_has_changed_since_is_left_out_and_named(tmp_path: Path) -> None:
    was = [rule(1), rule(2, column="tax", max_value=9), rule(3, column="fee", max_value=9), rule(4, column="x", max_value=1)]
    now = [was[0], rule(2, column="tax", max_value=10), replace(was[2], severity="critical")]
    done = exported(tmp_path, now, hour(*(judged(r, success=True, element_count=5) for r in was)))
    assert done.results == 1
    assert [(c.column, c.origin) for c in done.changed] == [
        ("tax", "/opt/expectations/shop.orders.toml: [[expect]] 2"),
        ("fee", "/opt/expectations/shop.orders.toml: [[expect]] 3"),
        ("x", "/opt/expectations/shop.orders.toml: [[expect]] 4"),
    ]


def test_a_rule_that_could_not_be_judged_has_its_exception(tmp_path: Path) -> None:
    broken = expectation_check(rule(1), expected(rule(1), build(rule(1))), RuleOutcome(success=False, result={}, error="no such column"))
    exported(tmp_path, [rule(1)], hour(broken))
    ((result,),) = (r.results for r in results(loaded(tmp_path)).values())
    assert (result.success, result.result) == (False, {})
    assert result.exception_info == {"raised_exception": True, "exception_message": "no such column", "exception_traceback": None}


def test_without_an_hour_there_are_suites_only(tmp_path: Path) -> None:
    done = exported(tmp_path, [rule(1)], None)
    assert (done.suites, done.results) == (["shop.shop.orders"], 0)
    assert results(loaded(tmp_path)) == {}


def test_a_suite_of_the_same_name_that_somebody_made_stays_unless_forced(tmp_path: Path) -> None:
    with quiet():
        from great_expectations import ExpectationSuite

        own = loaded(tmp_path)
        own.suites.add(ExpectationSuite("shop.shop.orders", meta={"mine": True}))
        own.suites.add(ExpectationSuite("other"))
    with pytest.raises(
        ConfigError, match=r"a suite shop\.shop\.orders that Tidelake did not write; nothing is written; give another folder"
    ):
        exported(tmp_path, [rule(1)], None)
    with quiet():
        assert loaded(tmp_path).suites.get("shop.shop.orders").meta["mine"] is True
    exported(tmp_path, [rule(1)], None, force=True)
    with quiet():
        suites = {s.name: len(s.expectations) for s in loaded(tmp_path).suites.all()}
    assert suites == {"shop.shop.orders": 1, "other": 0}


def test_data_docs_are_built_of_every_expectation_passed_failed_and_not_judged(tmp_path: Path) -> None:
    sampled = {kind: {"column": "day"} for kind, basis in BASIS.items() if basis == "sample"}
    rules = [rule(n, kind, **arguments) for n, (kind, arguments) in enumerate((ARGUMENTS | sampled).items(), 1)]
    outcomes = [
        {"success": True, "element_count": 10, "observed_value": 3},
        {"success": False, "element_count": 10, "unexpected_count": 2, "partial_unexpected_list": ["x"]},
        {"success": False, "observed_value": 0.5},
    ]
    columns = {"success": True, "observed_value": ["id", "name"]}
    done: Exported | None = None
    for n, outcome in enumerate(outcomes):
        facts = hour(*(judged(r, **(columns if BASIS[r.type] == "columns" else outcome)) for r in rules)).model_copy(
            update={"hour": f"2026-01-05T1{n}"}
        )
        done = exported(tmp_path, rules, facts, docs=n == 2)
    assert done is not None
    assert done.results == len(rules) == len(BASIS)
    assert done.docs is not None
    pages = sorted(Path(done.docs.removeprefix("file://")).parent.rglob("*.html"))
    assert len([p for p in pages if "validations" in p.parts]) == 3
    assert all("Data asset" in p.read_text() and "shop.orders" in p.read_text() for p in pages if "validations" in p.parts)
    assert len([p for p in tmp_path.rglob("*.json") if "validations" in p.parts]) == 3
