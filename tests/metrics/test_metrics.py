"""`tidelake metrics`: the gauges of feeds as OpenMetrics text and over OTLP, also of feeds that cannot be read."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.cli.calls import call
from tests.cli.lakes import TS, lake_of
from tidelake.config.lake_paths import certificate_key
from tidelake.io.storage import open_store
from tidelake.metrics import otlp
from tidelake.metrics.gauges import HELP, certificate_gauges
from tidelake.tso import physical_ms

CERTIFICATE = {
    "messages": 2065,
    "message_bytes": 812_004,
    "events": {"row": 265, "resolved": 1800},
    "rejected": {"TRUNCATED": 2},
    "late_events": 3,
    "rows": {"shop.a": {"changes": 200, "inserts": 200}, "shop.b": {"changes": 65}},
    "seconds": {"decode": 1.5, "compact": 2.25},
    "expectations": {"checks": [{"success": s, "severity": v} for s, v in [(True, "critical"), (False, "warning"), (False, "warning")]]},
}
Values = dict[tuple[str, str], float]


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    """A feed with one cut of two tables and its certificate."""
    feed = lake_of(tmp_path, [("shop", "a"), ("shop", "b")])
    open_store(feed.lake.uri).write(certificate_key(feed.name, 1), json.dumps(CERTIFICATE).encode())
    return feed.folder.parent


def values(text: str) -> Values:
    """The samples of feed shop: (name, other label) → value."""
    found = [s for family in text_string_to_metric_families(text) for s in family.samples]
    return {(s.name, ",".join(v for k, v in s.labels.items() if k != "feed")): s.value for s in found if s.labels["feed"] == "shop"}


def test_every_gauge_has_its_value(schemas: Path) -> None:
    done = call("metrics", "--schemas", schemas)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("# EOF\n")
    assert values(done.out) == {
        ("tidelake_up", ""): 1,
        ("tidelake_blocked", ""): 0,
        ("tidelake_waiting_hours", ""): 0,
        ("tidelake_quarantine_messages", ""): 0,
        ("tidelake_late_rows", ""): 0,
        ("tidelake_cut", ""): 1,
        ("tidelake_cut_incomplete", ""): 0,
        ("tidelake_cut_published_timestamp_seconds", ""): 0,
        ("tidelake_resolved_timestamp_seconds", ""): physical_ms(TS) / 1000,
        ("tidelake_tables", ""): 2,
        ("tidelake_table_rows", ""): 2,
        ("tidelake_cut_messages", ""): 2065,
        ("tidelake_cut_message_bytes", ""): 812_004,
        ("tidelake_cut_events", "row"): 265,
        ("tidelake_cut_events", "resolved"): 1800,
        ("tidelake_cut_rejected_messages", "TRUNCATED"): 2,
        ("tidelake_cut_changes", ""): 265,
        ("tidelake_cut_late_events", ""): 3,
        ("tidelake_cut_failed_checks", "critical"): 0,
        ("tidelake_cut_failed_checks", "warning"): 2,
        ("tidelake_cut_stage_seconds", "decode"): 1.5,
        ("tidelake_cut_stage_seconds", "compact"): 2.25,
    }
    assert {name for name, _ in values(done.out)} == set(HELP)


def test_a_certificate_without_a_member_has_no_gauge_of_it() -> None:
    assert list(certificate_gauges("shop", {})) == []
    assert [g.name for g in certificate_gauges("shop", {"messages": 1})] == ["tidelake_cut_messages"]


def test_a_feed_that_cannot_be_read_is_down_and_the_others_are_there(schemas: Path) -> None:
    (schemas / "broken").mkdir()
    (schemas / "broken" / "feed.toml").write_text("nonsense")
    done = call("metrics", "--schemas", schemas)
    assert done.code == 1
    assert done.err.startswith("error: broken: ")
    assert 'tidelake_up{feed="broken"} 0.0\n' in done.out
    assert values(done.out)["tidelake_cut", ""] == 1


def test_a_file_is_replaced_as_a_whole(schemas: Path, tmp_path: Path) -> None:
    target = tmp_path / "text" / "tidelake.prom"
    target.parent.mkdir()
    target.write_text("of before")
    assert call("metrics", "--schemas", schemas, "--feed", "shop", "--output", target).code == 0
    assert values(target.read_text())["tidelake_up", ""] == 1
    assert [p.name for p in target.parent.iterdir()] == ["tidelake.prom"]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ExportMetricsServiceRequest]]:
    """A collector of OTLP over HTTP, and what it received."""
    received: list[ExportMetricsServiceRequest] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            received.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield received
        server.shutdown()
        thread.join()


def test_a_collector_receives_every_gauge_with_its_labels(schemas: Path, collector: list[ExportMetricsServiceRequest]) -> None:
    done = call("metrics", "--schemas", schemas, "--otlp")
    assert (done.code, done.out) == (0, "22 values sent\n")
    (sent,) = collector
    (resource,) = sent.resource_metrics
    assert {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"] == "tidelake"
    points = {
        (m.name, tuple(sorted((a.key, a.value.string_value) for a in p.attributes))): p.as_double
        for m in resource.scope_metrics[0].metrics
        for p in m.gauge.data_points
    }
    assert len(points) == 22
    assert points["tidelake_cut_stage_seconds", (("feed", "shop"), ("stage", "compact"))] == 2.25
    assert points["tidelake_cut_messages", (("feed", "shop"),)] == 2065


def test_a_collector_that_does_not_answer_is_an_error(schemas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(otlp, "SECONDS", 0.2)
    done = call("metrics", "--schemas", schemas, "--otlp")
    assert done.code == 1
    assert "the OpenTelemetry collector did not take the metrics" in done.err
