"""The order stage: events in (applied, resolved] to deduplicated, ordered, typed changelogs, staged on a branch of this run.

Readers see nothing of it until compact publishes. A second run drops what an earlier attempt staged and stages it again. What orders is
imported only for an hour that is not published.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tidelake.lake.cut import Staged
from tidelake.lake.opened import Lake
from tidelake.lake.staged import Target
from tidelake.order.window_base import window_base


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderReport:
    """Result of the order stage. staged is None if there was nothing to do; `why` is the reason."""

    staged: Staged | None
    why: str = ""


def order_window(lake: Lake, target: Target, fence: int) -> OrderReport:
    """Stage the changelogs of the window that ends with the target's hour.

    Args:
        lake: The feed's lake.
        target: The hour, and what is redone.
        fence: Number of the lease that this run holds.

    Raises:
        OrderError, ConfigError, OwnershipError: What `window_base`, `plan_window`, `judge_late`, `stage_tables` and `hand_over` raise.
    """
    started = time.time()
    begins = window_base(lake, target)
    if isinstance(begins, str):
        return OrderReport(staged=None, why=begins)

    from tidelake.order.hand_over import hand_over
    from tidelake.order.late.judge import judge_late
    from tidelake.order.planning import plan_window
    from tidelake.order.staging import stage_tables

    plan = plan_window(lake, begins, fence)
    late = judge_late(lake, plan.events, plan.base, plan.seen) if plan.cut else {}
    tables = stage_tables(plan)
    return OrderReport(staged=hand_over(plan, tables, late, started))
