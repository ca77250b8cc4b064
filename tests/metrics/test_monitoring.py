"""monitoring/: the alert rules and the dashboard use metrics that exist, in PromQL that parses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml

from tests.checkout import CHECKOUT
from tidelake.metrics.gauges import HELP

ALERTS: dict[str, Any] = yaml.safe_load((CHECKOUT / "monitoring" / "alerts.yml").read_text())
DASHBOARD: dict[str, Any] = json.loads((CHECKOUT / "monitoring" / "grafana-dashboard.json").read_text())
PAGE = (CHECKOUT / "docs" / "how-to" / "metrics.md").read_text()


def rules() -> list[dict[str, Any]]:
    return [rule for group in ALERTS["groups"] for rule in group["rules"]]


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    yield from (target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])


@pytest.mark.parametrize("expression", list(expressions()))
def test_an_expression_parses_and_its_metrics_exist(expression: str) -> None:
    promql_parser.parse(expression.replace("$feed", "shop"))
    assert set(re.findall(r"\btidelake_\w+", expression)) <= set(HELP)


def test_an_alert_says_what_to_do() -> None:
    assert len(rules()) == 8
    assert {r["labels"]["severity"] for r in rules()} == {"critical", "warning"}
    assert all(r["annotations"]["summary"] and r["annotations"]["description"] for r in rules())


def test_panels_lie_side_by_side() -> None:
    places = [tuple(panel["gridPos"].values()) for panel in DASHBOARD["panels"]]
    assert len(places) == len(set(places)) == 14


def test_the_page_lists_every_metric() -> None:
    assert set(re.findall(r"^\| `(tidelake_\w+)", PAGE, re.MULTILINE)) == set(HELP)
