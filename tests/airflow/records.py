"""What Airflow's database holds of a run."""

from __future__ import annotations

from typing import Any


def events(run_id: str) -> list[dict[str, Any]]:
    """The asset events of a run: name, uri, partition key, extra, aliases."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(select(AssetEvent).where(AssetEvent.source_run_id == run_id).order_by(AssetEvent.id)).all()
        names = [session.get(AssetModel, e.asset_id).name for e in found]
        told = [{"uri": e.uri, "key": e.partition_key, "extra": e.extra, "aliases": [a.name for a in e.source_aliases]} for e in found]
        return [{"name": name, **event} for name, event in zip(names, told, strict=True)]


def links(run_id: str) -> dict[str, str]:
    """The addresses behind the tasks' links to reports."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(select(XComModel).where(XComModel.run_id == run_id, XComModel.key == "_link_QualityReportLink"))
        return {x.task_id: x.value for x in found}


def rendered(run_id: str) -> dict[str, Any]:
    """The rendered fields of a run's tasks."""
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(select(RenderedTaskInstanceFields).where(RenderedTaskInstanceFields.run_id == run_id))
        return {r.task_id: r.rendered_fields for r in found}


def queued(dag_id: str) -> list[str]:
    """The partition keys for which a DAG is to run, sorted."""
    from airflow.models.asset import AssetPartitionDagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(select(AssetPartitionDagRun).where(AssetPartitionDagRun.target_dag_id == dag_id))
        return sorted(r.partition_key for r in found)
