"""Publishes a folded window: checks, certifies, declares the intent and carries it out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from tidelake.compact.fold_target import Folded
from tidelake.lake.cut import Cut, Staged
from tidelake.lake.cuts import places
from tidelake.lake.decisions import acceptances, named
from tidelake.lake.namespaces import clear_way
from tidelake.lake.opened import Lake
from tidelake.order.incomplete import refuse
from tidelake.order.offset_rules import findings
from tidelake.publish.before_images import reconciled
from tidelake.publish.certificate import proof_of
from tidelake.publish.certify import certify
from tidelake.publish.intent import intent_of
from tidelake.publish.replace import redone, replace
from tidelake.publish.steps import carry_out, declare
from tidelake.validate.quality.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Result of a compact run. cut is None if the hour was published before."""

    cut: Cut | None
    certificate: dict[str, Any]


def publish_window(
    lake: Lake, newest: Cut | None, staged: Staged, verdict: Verdict, folded: dict[str, Folded], started: float
) -> Published:
    """Publish a folded window as one cut. A redo replaces the cuts that it rebuilt.

    Args:
        lake: The feed's lake.
        newest: The newest published cut.
        staged: The staged window.
        verdict: Its verdict.
        folded: Result for each table, by incarnation.
        started: When compact began, in seconds since the epoch.

    Raises:
        QualityError: BEFORE_IMAGES.
        OrderError: INCOMPLETE.
        StorageError: TAKEN, TABLE_MOVED.
        OwnershipError: NOT_OURS, NAME_COLLISION.
    """
    feed, catalog = lake.feed, lake.catalog
    images = {i.name: f.images for i in staged.cut.catalog.alive() if (f := folded.get(i.id)) and f.images and f.images.compared}
    verdict.checks += reconciled(feed, images)
    intent = intent_of(feed, staged, folded)
    replaces = newest if staged.cut.parent_seq is not None else None
    if replaces is not None:
        replace(catalog, intent, replaces)
    clear_way(catalog, intent, frozenset(places(newest)) if newest else frozenset())
    seconds = staged.seconds | verdict.seconds | {"compact": round(time.time() - started, 3)}
    intent.certificate = proof_of(staged, verdict, folded, newest, intent.cut, seconds)
    if found := [*findings(feed), *staged.findings]:
        intent.certificate["findings"] = found
    if staged.cut.accepted:
        intent.certificate["decisions"] = [
            a.model_dump(mode="json") for a in acceptances(lake.store, feed.name, named(staged.cut.accepted))
        ]
    if replaces is not None:
        intent.certificate["redo"] = redone(lake.spark, catalog, replaces, intent)
    refuse(feed, intent.cut)  # the policy may have changed since order staged it
    certify(lake, intent, "hour" if replaces is None else "redo")
    declare(lake.store, intent)
    return Published(cut=carry_out(catalog, lake.store, intent), certificate=intent.certificate)
