"""Tasks of the feed DAGs that publish: `compact`, or `decide` for it, reports the cut's tables to Airflow, and `complete` shows whether the
cut is complete.

Every cut is an event of the feed; a table has an event if the cut changed it.

A consumer hears of every hour of a cut by its partition key. Airflow gives events through an alias the key of their run only. So hours that
are not the run's key (a run with `hour`, `until` or `redo`) are emitted on the table's own asset, if a DAG is scheduled on it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import Asset, Context, TriggerRule
from airflow.sdk.exceptions import AirflowRuntimeError, AirflowSkipException, ErrorType

from tidelake.airflow.stage import QualityReportLink, StageOperator, dag_id, stage_options
from tidelake.config.lake_paths import CATALOG


class PublishOperator(StageOperator):
    """Runs a stage. After compact it emits an asset event for the cut and one for each table that the cut changed."""

    def run_stage(self, context: Context) -> dict[str, Any] | None:
        """Run the stage. Return, of compact, number and hour of the feed's newest cut and the reasons why it is incomplete."""
        if self.stage != "compact":
            super().run_stage(context)
            return None
        hours, environment = self.given(context)
        redo = bool(context["params"].get("redo"))
        with tempfile.TemporaryDirectory(prefix="tidelake-") as folder:
            file = Path(folder) / "status.json"
            self._run(hours[-1], [*stage_options(hours, redo=redo)["compact"], "--status", str(file)], environment)
            status = json.loads(file.read_text(encoding="utf-8"))
        reasons = [f"{r['code']}: {r['detail']}" for r in status["incomplete_because"]]
        cut = {"cut": status["cut"], "hour": status["published_hour"], "incomplete": reasons}
        if cut["hour"] and (redo or cut["hour"] == self.hour):
            self._emit(context, status, cut)
        return cut

    def _emit(self, context: Context, status: Mapping[str, Any], cut: Mapping[str, Any]) -> None:
        """Emit the events of the cut, which a redo publishes at a later hour than the run's.

        A run that is repeated after its cut was published emits again; snapshot ids identify repeats. TSOs and snapshot ids are text,
        because they exceed JavaScript's exact integers. `incomplete` has the reasons, [] for a complete cut.
        """
        self.hour = cut["hour"]
        if cut["incomplete"]:
            self.log.warning("%s", said_incomplete(cut))
        report = QualityReportLink().get_link(self, ti_key=context["ti"])
        facts = {"feed": self.feed, **cut, "resolved_ts": str(status["published_ts"]), "report": report}
        others = [hour for hour in status["cut_hours"] if hour != context.get("partition_key")]
        changed = {name: table for name, table in status["tables"].items() if table["changed"] is not None}
        self.log.info("cut %s changed %s of %s tables", cut["cut"], len(changed), len(status["tables"]))
        for name, table in changed.items():
            numbers = {"snapshot_id": str(table["snapshot_id"]), "rows": table["rows"], "changed": table["changed"]}
            place = f"iceberg://{CATALOG}/{table['table'].replace('.', '/')}"
            self._emit_one(context, Asset(name=table["table"], uri=place), {**facts, "table": name, **numbers}, others)
        cuts = Asset(name=f"{dag_id(self.feed)}.cuts", uri=f"tidelake://cuts/{self.feed}")
        self._emit_one(context, cuts, {**facts, "tables": len(status["tables"]), "changed": sorted(changed)}, others)

    def _emit_one(self, context: Context, asset: Asset, extra: dict[str, Any], others: list[str]) -> None:
        """Emit an event through the alias and, if a DAG is scheduled on the asset, one for each of the other hours.

        A DAG may know the asset by another name: then the events are of that name.
        """
        known = _known(context, asset.uri)
        asset = known or asset
        context["outlet_events"][self.outlets[0]].add(asset, extra=extra)
        if not (others and known):
            return
        event = context["outlet_events"][asset]
        if not hasattr(event, "add_partitions"):  # Airflow 3.2
            self.log.warning("this version of Airflow cannot emit events of other hours than the run's: %s", ", ".join(others))
            return
        self.outlets = [*self.outlets, asset]
        event.extra = extra
        event.add_partitions(others)


class CompleteOperator(StageOperator):
    """Shows in the grid whether the feed's newest cut is complete: skipped if it is not."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(stage="complete", trigger_rule=TriggerRule.ONE_SUCCESS, **kwargs)  # of compact and decide

    def execute(self, context: Context) -> None:
        """Succeed for a complete cut. Raises AirflowSkipException with the reasons for an incomplete one.

        The log has the reasons, too: Airflow's interface hides those of a skipped task in a closed group.
        """
        said = [c for c in context["ti"].xcom_pull(task_ids=["compact", "decide"]) if c]  # both, if one of them was cleared and ran again
        none: dict[str, Any] = {"hour": None, "incomplete": []}  # said by nobody, if a person marked compact as successful
        cut = max(said, key=lambda c: c["cut"] or 0, default=none)
        self.hour = cut["hour"]
        if cut["incomplete"]:
            self.log.warning("%s", said_incomplete(cut))
            raise AirflowSkipException(said_incomplete(cut))
        if said:
            self.log.info("cut %s is complete", cut["cut"])


def said_incomplete(cut: Mapping[str, Any]) -> str:
    """Return why a cut is incomplete as one line."""
    return f"cut {cut['cut']} is INCOMPLETE: {'; '.join(cut['incomplete'])}"


def _known(context: Context, uri: str) -> Asset | None:
    """Return the asset that Airflow knows from a DAG's schedule. An asset that only the alias made is not active."""
    events: Any = context["outlet_events"]
    try:
        key = events.for_asset(uri=uri).key
    except AirflowRuntimeError as e:
        if e.error.error == ErrorType.ASSET_NOT_FOUND:
            return None
        raise
    return Asset(name=key.name, uri=key.uri)
