"""Aggregates of a frame, computed by the query that writes it, so that it is not read twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class Observed:
    """Aggregates of a frame. `rows` is the frame to use from here on; `values` are available once it has been written."""

    def __init__(self, frame: DataFrame, *aggregates: Column, again: Callable[[], DataFrame] | None = None) -> None:
        """again: gives an equal frame that observes nothing itself, where `frame` does."""
        from pyspark.sql import Observation

        self._observation = Observation()
        self._again = again or (lambda: frame)
        self._aggregates = aggregates
        self.rows = frame.observe(self._observation, *aggregates)

    def values(self) -> dict[str, Any]:
        """Return the aggregates by name.

        Spark Connect's server sends them only if they are ready 100 ms after the query ended, and Spark has none for a plan that it found
        to be empty (it throws then). In these cases a query computes them.
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
