"""Gauges as OpenMetrics text. The only user of prometheus_client.

Source: OpenMetrics 1.0, https://prometheus.io/docs/specs/om/open_metrics_spec/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from tidelake.metrics.gauges import HELP, Gauge


class _Collected(Collector):
    def __init__(self, gauges: Iterable[Gauge]) -> None:
        self.gauges = list(gauges)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, text in HELP.items():
            found = [g for g in self.gauges if g.name == name]
            if found:
                family = GaugeMetricFamily(name, text)
                for g in found:
                    family.add_sample(name, {"feed": g.feed, **g.labels}, g.value)
                yield family


def openmetrics(gauges: Iterable[Gauge]) -> bytes:
    """Return the gauges as OpenMetrics text, in UTF-8."""
    registry = CollectorRegistry()
    registry.register(_Collected(gauges))
    return bytes(generate_latest(registry))  # type: ignore[no-untyped-call]
