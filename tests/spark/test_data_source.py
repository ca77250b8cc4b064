"""Data sources are registered in a session when they are first read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from tidelake.decode.landed_source import LandedSource
from tidelake.seed.export_source import ExportSource
from tidelake.spark import data_source


class Session:
    """Registers sources; refuses a name that it has, as Spark does."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.dataSource = self

    def register(self, source: type[data_source.EventSource]) -> None:
        assert source.name() not in self.names, "DATA_SOURCE_ALREADY_EXISTS"
        self.names.append(source.name())


class Meeting(set[str]):
    """What a session knows. Two threads that ask at the same time get the same answer."""

    barrier = Barrier(2)

    def __contains__(self, name: object) -> bool:
        there = super().__contains__(name)
        with suppress(BrokenBarrierError):
            self.barrier.wait(0.2)
        return there


def test_threads_that_read_a_source_for_the_first_time_register_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_source, "is_client", lambda _: True)
    session: Any = Session()
    monkeypatch.setitem(data_source._KNOWN, session, Meeting())
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: data_source._register(session, ExportSource), range(2)))
    assert session.names == ["tidelake-export"]
    data_source._register(session, LandedSource)
    assert session.names == ["tidelake-export", "tidelake"]
