"""`tidelake verify` without a connection: the SQL to run at the source, and what its answers say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.calls import Called, call
from tests.query.verify import everything
from tidelake.config.feed import ColumnPolicy, load_feed
from tidelake.lake.opened import Lake
from tidelake.query.asof import life_at
from tidelake.query.verify.cell_texts import SourceCell
from tidelake.query.verify.questions import EVERYTHING, sums
from tidelake.query.verify.table import plan_of

GOLDEN = Path(__file__).with_name("everything.sql")
BAG = "d.bag at 463367621836800007 (2026-01-05T10:00:00.000Z)"


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    everything.lake(folder)
    return folder / "schemas"


def verify(schemas: Path, table: str, *more: object) -> Called:
    return call("verify", "--feed", "shop", "--schemas", schemas, "--table", table, *more)


def test_the_sql_is_what_it_was(schemas: Path) -> None:
    done = verify(schemas, "all")
    assert done.code == 0
    assert done.out == GOLDEN.read_text()
    assert done.err.splitlines() == [
        "3 questions to tidb at 463367621836800007 (2026-01-05T10:00:00.000Z); run the SQL there, then give --answers",
        "d.everything: zero dates count as NULL, which the lake has for them: day, moment, fine, instant",
    ]


def test_the_sql_only_reads() -> None:
    statements = [line for line in GOLDEN.read_text().splitlines() if not line.startswith("--")]
    assert {s.split()[0] for s in statements} == {"SET", "SELECT"}
    assert {re.sub(r"'.*", "", s) for s in statements if s.startswith("SET")} == {
        "SET NAMES utf8mb4;", "SET SESSION time_zone=", "SET SESSION sql_mode=", "SET SESSION tidb_snapshot="
    }  # fmt: skip


def test_a_server_without_snapshots_answers_in_one_transaction(schemas: Path) -> None:
    done = verify(schemas, "d.bag", "--source", "mysql")
    assert "\nSTART TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;\n" in done.out
    assert "tidb_snapshot" not in done.out


@pytest.fixture
def question(schemas: Path) -> tuple[str, int]:
    """The id of the one question about d.bag, and the sum that answers it."""
    found = re.findall(r"SELECT '(q[0-9a-f]{15})',0,", verify(schemas, "d.bag").out)
    texts = ["5:twice|1", "5:twice|1", "~|2", *(f"{len(f'v{i}')}:v{i}|{i}" for i in range(20))]
    assert len(found) == 1
    return found[0], sum(map(everything.total, texts))


def test_answers_that_equal_the_lakes(schemas: Path, question: tuple[str, int], tmp_path: Path) -> None:
    (tmp_path / "answers").write_text(f"{question[0]}\t0\t23\t{question[1]}\n{question[0]}\tdone\n")
    done = verify(schemas, "d.bag", "--answers", tmp_path / "answers")
    assert (done.code, done.out, done.err) == (0, f"{BAG}: equal, 23 rows in 1 range\n", "")


def test_what_differs_is_asked_next(schemas: Path, question: tuple[str, int], tmp_path: Path) -> None:
    (tmp_path / "answers").write_text(f"{question[0]}\t0\t24\t{question[1]}\n{question[0]}\tdone\n")
    done = verify(schemas, "d.bag", "--answers", tmp_path / "answers", "--sql", tmp_path / "next.sql")
    assert done.code == 3
    assert done.out.splitlines() == [
        f"{BAG}: different in 1 of 1 range: 23 rows here, 24 upstream",
        "  1 question about the differences is not answered yet",
    ]
    (asked,) = re.findall(r"SELECT '(q[0-9a-f]{15})',([^'].*)", (tmp_path / "next.sql").read_text())
    assert asked[0] != question[0]
    assert "COUNT" not in asked[1]  # so few rows are asked for at once


def test_the_same_question_at_another_tso_is_another(schemas: Path, question: tuple[str, int]) -> None:
    assert question[0] not in verify(schemas, "d.bag", "--source", "mysql").out
    with Lake.of(load_feed(schemas, "shop")) as lake:
        _, life = life_at(lake, "d.bag", None)
        plans = [plan_of(lake.feed, life, "d.bag", everything.TS + later, SourceCell.tidb)[0] for later in (0, 1)]
    asked = [sums(plan, EVERYTHING).id for plan in plans if plan is not None]
    assert (asked[0], len(set(asked))) == (question[0], 2)


@pytest.mark.parametrize("mask", ["null", "drop", "truncate(2)"])
def test_a_masked_column_is_named_and_not_compared(schemas: Path, mask: str) -> None:
    with Lake.of(load_feed(schemas, "shop")) as lake:
        _, life = life_at(lake, "d.bag", None)
        (masked, *others) = life.columns_at(everything.TS)
        feed = lake.feed.model_copy(update={"columns": {"d.bag": {masked.name: ColumnPolicy(mask=mask)}}})
        plan, uncompared, _ = plan_of(feed, life, "d.bag", everything.TS, SourceCell.tidb)
    assert plan is not None
    assert [t.name for t in plan.texts] == [c.name for c in others]
    assert uncompared == {masked.name: f"masked ({mask})"}


@pytest.mark.parametrize("content", ["{id}\t0\t23\t1\n", "", "ERROR 1064 (42000) at line 5\n", "q0123456789abcde\tdone\n"])
def test_answers_that_lack_something_prove_nothing(content: str, schemas: Path, question: tuple[str, int], tmp_path: Path) -> None:
    (tmp_path / "answers").write_text(content.format(id=question[0]))
    done = verify(schemas, "d.bag", "--answers", tmp_path / "answers")
    assert (done.code, done.out) == (2, "")
    assert "answer" in done.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--connect", "postgres://h/d"), "not the URL of a MySQL server"),
        (("--connect", "mysql://u:secret@h:notaport"), "its port is not a number from 1 to 65535"),
        (("--connect", "mysql://u:secret@h?sslmode=x"), "has an unknown option; allowed: "),
        (("--connect", "mysql://u:secret@h", "--sql", "x"), "leave out --answers and --sql"),
        (("--at", "yesterday"), "not an ISO 8601 time"),
    ],
)
def test_wrong_use_is_said_without_the_password(more: tuple[str, ...], said: str, schemas: Path) -> None:
    done = verify(schemas, "d.bag", *more)
    assert done.code == 2
    assert said in done.err
    assert "secret" not in done.err
