"""Rows for people: a table that fits, records one below the other where it does not, as many as asked for."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from tidelake.cli import rows
from tidelake.cli.rows import ShownRows, print_rows
from tidelake.cli.terminal import Terminal

WIDE = {f"column_{n}": ["a value of some length", None] for n in range(8)}


def printed(monkeypatch: pytest.MonkeyPatch, found: dict[str, list[str | None]], page: ShownRows, *, terminal: bool = False) -> str:
    """What a console of 80 columns shows."""
    out = io.StringIO()
    monkeypatch.setattr(rows, "out", Terminal(file=out, width=80, force_terminal=terminal, color_system=None, emoji=False))
    table = pa.table(found)
    print_rows(list(found), [f'"{name}"' for name in found], table.to_reader(), page)
    return out.getvalue()


def test_a_limit_says_how_many_rows_there_are_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = printed(monkeypatch, {"id": [str(n) for n in range(9)]}, ShownRows(title="orders", limit=3))
    assert [line.strip(" │") for line in shown.splitlines() if line.strip(" │").isdigit()] == ["0", "1", "2"]
    assert "the first 3 rows; --limit N shows more, --format jsonl all" in shown
    assert "the first" not in printed(monkeypatch, {"id": ["1", "2"]}, ShownRows(title="orders", limit=2))


def test_vertical_rows_have_a_line_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = printed(monkeypatch, {"id": ["1", "2"], "name": ["[bold]x", None]}, ShownRows(title="orders", vertical=True))
    assert shown.splitlines() == ["orders", "─── row 1", "  id  1", "name  [bold]x", "─── row 2", "  id  2", "name  ∅"]


def test_a_table_wider_than_the_terminal_is_shown_vertically_and_whole_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "─── row 2" in printed(monkeypatch, WIDE, ShownRows(title="orders"), terminal=True)
    assert "─── row" not in printed(monkeypatch, WIDE, ShownRows(title="orders"))
    assert "─── row" not in printed(monkeypatch, {"id": ["1"]}, ShownRows(title="orders"), terminal=True)


def test_names_and_values_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "[red]" in printed(monkeypatch, {"[red]": ["x"]}, ShownRows(title="[blue]"))


def test_no_rows_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, {"id": []}, ShownRows(title="orders")) == "orders: no rows\n"
