"""Send gauges to an OpenTelemetry collector (OTLP over HTTP). The only user of opentelemetry.

The collector's address and headers come from OpenTelemetry's own variables: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tidelake.errors import ConfigError, StorageError
from tidelake.metrics.gauges import HELP, Gauge

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

SECONDS = 30


def send(gauges: Iterable[Gauge]) -> None:
    """Send the gauges once.

    Raises:
        ConfigError: The extra `otlp` is not installed.
        StorageError: The collector does not take them.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.metrics import Observation
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExportResult
        from opentelemetry.sdk.resources import Resource
    except ImportError as e:
        raise ConfigError(f"OTLP needs a package that is not installed: {e.name}", remedy="`pip install 'tidelake[otlp]'`") from e
    by_name = defaultdict[str, list[Observation]](list)
    for g in gauges:
        by_name[g.name].append(Observation(g.value, {"feed": g.feed, **g.labels}))
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], Resource.create({"service.name": "tidelake"}), shutdown_on_exit=False)
    meter = provider.get_meter("tidelake")
    for name, observed in by_name.items():
        meter.create_observable_gauge(name, [partial(_observed, observed)], description=HELP[name])
    data = reader.get_metrics_data()
    exporter = OTLPMetricExporter(timeout=SECONDS)
    try:
        done = exporter.export(data) if data is not None else MetricExportResult.SUCCESS
    finally:
        exporter.shutdown()
        provider.shutdown()
    if done is not MetricExportResult.SUCCESS:
        remedy = "check OTEL_EXPORTER_OTLP_ENDPOINT and the collector"
        raise StorageError("the OpenTelemetry collector did not take the metrics", remedy=remedy)


def _observed(values: Sequence[Observation], options: CallbackOptions) -> Sequence[Observation]:
    """A gauge's callback: its values."""
    return values
