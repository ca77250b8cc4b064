"""OpenLineage (docs/openlineage.md): a child process says what a stage read and wrote, and this module makes events' datasets of it.

The only user of openlineage, which Airflow's provider of it installs. Without that provider nothing is asked.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidelake.io.printable import printable

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

Facts = Mapping[str, Sequence[Mapping[str, Any]]]  # what `python -m tidelake.query.lineage` prints
READ_SECONDS = 120
_COUNTS = ("rows", "size", "files")
_SEVERITIES = {"critical": "error", "warning": "warn"}

log = logging.getLogger(__name__)


def is_wanted() -> bool:
    """Whether Airflow sends OpenLineage events."""
    try:
        from airflow.providers.openlineage import conf
    except ImportError:
        return False
    return not conf.is_disabled()


def facts_of(schemas: str, feed: str, stage: str, hour: str, environment: Mapping[str, str], *, redo: bool) -> Facts:
    """Return what a stage read and wrote. redo: of the hours from this one on.

    If that cannot be read, log a warning and return nothing: the stage itself has succeeded.
    """
    command = [sys.executable, "-P", "-m", "tidelake.query.lineage", schemas, feed, stage, hour, *(["redo"] if redo else [])]
    try:
        done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, timeout=READ_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        log.warning("no lineage: no answer within %s s", READ_SECONDS)
        return {}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        log.warning("no lineage: %s", printable(lines[-1]) if lines else f"the reader ended with status {done.returncode}")
        return {}
    found: Facts = json.loads(done.stdout)
    return found


def operator_lineage(found: Sequence[Facts]) -> OperatorLineage[Any, Any]:
    """Return the datasets of one or more hours. Numbers of what was written are added up."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset

    inputs, outputs = (_merged(d for facts in found for d in facts.get(side, ())) for side in ("inputs", "outputs"))
    return OperatorLineage(
        inputs=[InputDataset(d["namespace"], d["name"], facets=_facets(d), inputFacets=_checks(d)) for d in inputs],
        outputs=[OutputDataset(d["namespace"], d["name"], facets=_facets(d), outputFacets=_written(d)) for d in outputs],
    )


def _merged(datasets: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found = dict[tuple[str, str], Mapping[str, Any]]()
    for d in datasets:
        before = found.get((d["namespace"], d["name"]))
        sums = {n: (before[n] or 0) + (d[n] or 0) for n in _COUNTS if before[n] is not None or d[n] is not None} if before else {}
        found[d["namespace"], d["name"]] = {**d, **sums}
    return list(found.values())


def _facets(d: Mapping[str, Any]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import column_lineage_dataset, dataset_version_dataset, schema_dataset, symlinks_dataset

    found = dict[str, Any]()
    if d["columns"]:
        columns = [schema_dataset.SchemaDatasetFacetFields(name=n, type=t, description=doc or None) for n, t, doc in d["columns"]]
        found["schema"] = schema_dataset.SchemaDatasetFacet(fields=columns)
    if d["table"]:
        name = symlinks_dataset.Identifier(namespace=d["table"][0], name=d["table"][1], type="TABLE")
        found["symlinks"] = symlinks_dataset.SymlinksDatasetFacet(identifiers=[name])
    if d["version"]:
        found["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=d["version"])
    if d["source"]:
        theirs = {n for n, _, _ in d["source"]["columns"]}
        fields = {n: _taken(d["source"], n) for n, _, _ in d["columns"] if n in theirs}
        found["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(fields=fields)
    return found


def _taken(source: Mapping[str, Any], column: str) -> Any:
    """The column is the source's column of that name, unchanged."""
    from openlineage.client.facet_v2 import column_lineage_dataset as of

    how = of.Transformation(type="DIRECT", subtype="IDENTITY")
    return of.Fields([of.InputField(namespace=source["namespace"], name=source["name"], field=column, transformations=[how])])


def _checks(d: Mapping[str, Any]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import data_quality_assertions_dataset as of

    assertions = [
        of.Assertion(
            assertion=c["rule"],
            success=c["success"],
            column=c.get("column"),
            severity=_SEVERITIES[c["severity"]],
            expected=c.get("expected") or None,
            actual=c.get("observed") or None,
        )
        for c in d["checks"]
    ]
    return {"dataQualityAssertions": of.DataQualityAssertionsDatasetFacet(assertions)} if assertions else {}


def _written(d: Mapping[str, Any]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import output_statistics_output_dataset as of

    if all(d[n] is None for n in _COUNTS):
        return {}
    return {"outputStatistics": of.OutputStatisticsOutputDatasetFacet(rowCount=d["rows"], size=d["size"], fileCount=d["files"])}
