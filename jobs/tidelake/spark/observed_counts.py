"""Aggregates of a frame that come with the query which writes it, so that it is not read twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class Observed:
    """Aggregates of a frame. `rows` is the frame to go on with; `values` are there once something has written it."""

    def __init__(self, frame: DataFrame, *aggregates: Column, again: Callable[[], DataFrame] | None = None) -> None:
        """again: gives an equal frame that observes nothing itself, where `frame` does."""
        from pyspark.sql import Observation

        self._observation = Observation()
        self._again = again or (lambda: frame)
        self._aggregates = aggregates
        self.rows = frame.observe(self._observation, *aggregates)

    def values(self) -> dict[str, Any]:
        """The aggregates by name.

        Spark Connect's server sends them only if they are ready 100 ms after the query ended, and no Spark has any of a plan that it found
        to be empty (it throws then): so a query asks.
        """
        found = self._sent()
        if found:
            return found
        row = self._again().agg(*self._aggregates).first()
        return {} if row is None else row.asDict()

    def _sent(self) -> dict[str, Any]:
        from py4j.protocol import Py4JJavaError

        try:
            return dict(self._observation.get)
        except Py4JJavaError as e:
            if "java.lang.AssertionError" not in str(e):
                raise
            return {}
