"""A publishing that ends at a chosen step, as if by SIGKILL."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tidelake.lake.catalog import LakeCatalog
from tidelake.publish import steps as publish


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


def kill_at(patch: pytest.MonkeyPatch, step: str, nth: int, module: ModuleType = publish) -> None:
    """The nth call of a step, of the catalog or the module, ends the process, so to say."""
    calls = [0]

    def guarded(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **named: Any) -> Any:
            calls[0] += 1
            if calls[0] == nth + 1:
                raise Killed(step)
            return call(*arguments, **named)

        return wrapper

    if hasattr(LakeCatalog, step):
        patch.setattr(LakeCatalog, step, guarded(getattr(LakeCatalog, step)))
    else:
        patch.setattr(module, step, guarded(getattr(module, step)))
