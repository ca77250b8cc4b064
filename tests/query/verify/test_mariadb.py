"""`tidelake verify` against a real MariaDB that holds the lake's rows, all or nearly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.calls import Called, call
from tests.io.mariadb_server import MariaDB
from tests.query.verify import everything
from tidelake.config.feed import Feed
from tidelake.io.mysql import reader
from tidelake.lake.opened import Lake
from tidelake.query.verify.cell_texts import SourceCell
from tidelake.query.verify.compare import CHANGED, MISSING_HERE, MISSING_UPSTREAM, ComparedTable, RowDifference
from tidelake.query.verify.questions import Question, session
from tidelake.query.verify.table import verify_table
from tidelake.query.verify.upstream import Connected, UpstreamAnswer

pytest.importorskip("pymysql", reason="needs PyMySQL, of the extra `mysql`")
AT = "463367621836800007 (2026-01-05T10:00:00.000Z)"
SMALL = (16, 4)  # rows of a part, so that few rows have many parts


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDB]:
    with MariaDB() as server:
        yield server


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    return everything.lake(tmp_path_factory.mktemp("lake"))


@pytest.fixture
def source(server: MariaDB) -> MariaDB:
    """The server with the lake's rows in database d."""
    words = ",".join(f"('{r['word']}',{r['n']})" for r in everything.WORDS)
    bag = ",".join(f"({'NULL' if r['v'] is None else repr(r['v'])},{r['n']})" for r in everything.BAG)
    rows = [everything.insert(i) for i in range(everything.ROWS)]
    fill = [*rows, f"INSERT INTO words VALUES {words}", f"INSERT INTO bag VALUES {bag}"]
    begin = ["DROP DATABASE IF EXISTS d", "CREATE DATABASE d", "USE d", "SET time_zone='+00:00'"]
    server.execute(*begin, everything.CREATE, *everything.OTHERS, *fill)
    return server


def verify(feed: Feed, *arguments: object) -> Called:
    return call("verify", "--feed", "shop", "--schemas", feed.folder.parent, *arguments)


@dataclass
class Counted(Connected):
    """Counts its questions, and the rows of its last answer."""

    questions: int = 0
    rows: int = 0

    def ask(self, question: Question) -> UpstreamAnswer | None:
        self.questions += 1
        found = Connected.ask(self, question)
        self.rows = len(found or ())
        return found


def counted(feed: Feed, source: MariaDB, table: str) -> tuple[ComparedTable, Counted]:
    """In small parts."""
    with Lake.of(feed) as lake, reader(source.url) as asked:
        for statement in session(SourceCell.mariadb, everything.TS):
            asked.query(statement)
        upstream = Counted(asked)
        return verify_table(lake, table, everything.TS, SourceCell.mariadb, upstream, SMALL).compared, upstream


def compared(feed: Feed, source: MariaDB, table: str) -> ComparedTable:
    return counted(feed, source, table)[0]


def key(number: int) -> dict[str, str]:
    return {"region": str(number % 3), "id": str(2**64 - 1 - number)}


def where(number: int) -> str:
    return f"region = {number % 3} AND id = {2**64 - 1 - number}"


def test_equal_tables_are_equal(feed: Feed, source: MariaDB) -> None:
    done = verify(feed, "--connect", source.url)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"d.bag at {AT}: equal, 23 rows in 1 range",
        f"d.everything at {AT}: equal, 100 rows in 1 range",
        "  zero dates count as NULL, which the lake has for them: day, moment, fine, instant",
        f"d.words at {AT}: equal, 60 rows in 1 range",
    ]


@pytest.mark.parametrize("table", ["d.everything", "d.words", "d.bag"])
def test_small_parts_are_equal_too(table: str, feed: Feed, source: MariaDB) -> None:
    found = compared(feed, source, table)
    assert (found.equal, found.different, found.rows_here) == (True, 0, found.rows_upstream)
    assert found.ranges == {"d.everything": 7, "d.words": 4, "d.bag": 2}[table]


def test_a_changed_cell_a_missing_row_and_one_too_many_are_found(feed: Feed, source: MariaDB) -> None:
    source.execute(
        f"UPDATE d.everything SET price = price + 0.0001, day = '2026-02-30' + INTERVAL 1 DAY WHERE {where(4)}",
        f"UPDATE d.everything SET long_ = 'x\\ty', tiny = NULL WHERE {where(4)}",
        f"DELETE FROM d.everything WHERE {where(50)}",
        "INSERT INTO d.everything (region, id) VALUES (7, 1)",
    )
    found = compared(feed, source, "d.everything")
    assert (found.equal, found.ranges, found.rows_here, found.rows_upstream) == (False, 7, 100, 100)
    assert found.different == 3
    cells = {"tiny": ("-128", None), "price": ("-0.0500", "-0.0499"), "long_": ("line\nline 🦀", "x\ty"), "day": ("2026-01-05", None)}
    assert sorted(found.rows, key=lambda r: r.kind) == [
        RowDifference(kind=CHANGED, key=key(4), columns={name: cells[name] for name in ("tiny", "price", "day", "long_")}),
        RowDifference(kind=MISSING_HERE, key={"region": "7", "id": "1"}),
        RowDifference(kind=MISSING_UPSTREAM, key=key(50)),
    ]


def test_a_change_of_any_column_is_found_in_its_row_and_in_no_other(feed: Feed, source: MariaDB) -> None:
    changes = [
        f"UPDATE d.everything SET `{name}` = {everything.cell(name, i + 1)[1]} WHERE {where(i)}" for i, name in enumerate(everything.KINDS)
    ]
    source.execute("SET time_zone='+00:00'", *changes)
    found = compared(feed, source, "d.everything")
    assert {tuple(r.key.values()): list(r.columns) for r in found.rows} == {
        tuple(key(i).values()): [name] for i, name in enumerate(everything.KINDS)
    }


def test_two_rows_that_changed_alike_do_not_hide_each_other(feed: Feed, source: MariaDB) -> None:
    source.execute(f"UPDATE d.everything SET fixed = 'a|~\\t/' WHERE {where(0)} OR {where(6)}")
    found = compared(feed, source, "d.everything")
    assert [(r.kind, list(r.columns)) for r in found.rows] == [(CHANGED, ["fixed"])] * 2


def test_keys_of_text_need_no_order(feed: Feed, source: MariaDB) -> None:
    source.execute("UPDATE d.words SET word = 'W7' WHERE word = 'w7'", "DELETE FROM d.words WHERE word = 'w9'")
    found = compared(feed, source, "d.words")
    assert [(r.kind, r.key["word"]) for r in found.rows] == [(MISSING_HERE, "W7"), (MISSING_UPSTREAM, "w7"), (MISSING_UPSTREAM, "w9")]


def test_a_table_without_an_index_for_ranges_is_read_three_times_at_most(feed: Feed, source: MariaDB) -> None:
    """Ranges, parts, rows: one question each, though what differs lies far apart."""
    order = sorted((r["word"] for r in everything.WORDS), key=lambda w: everything.total(f"{len(w)}:{w}"))
    source.execute(f"UPDATE d.words SET n = -1 WHERE word IN ('{order[0]}', '{order[-1]}')")
    found, asked = counted(feed, source, "d.words")
    assert [r.key["word"] for r in found.rows] == sorted([order[0], order[-1]])
    assert (asked.questions, asked.rows) == (3, 8)  # two parts of four


def test_a_table_without_a_key_is_a_multiset(feed: Feed, source: MariaDB) -> None:
    source.execute("DELETE FROM d.bag WHERE v = 'twice'", "INSERT INTO d.bag VALUES ('twice', 1), ('v3', 3)")
    found = compared(feed, source, "d.bag")
    assert [(r.kind, r.key) for r in found.rows] == [
        (MISSING_UPSTREAM, {"v": "twice", "n": "1"}),
        (MISSING_HERE, {"v": "v3", "n": "3"}),
    ]


def test_json_of_another_order_is_equal(feed: Feed, source: MariaDB) -> None:
    source.execute("""UPDATE d.everything SET document = '{"a":[1,2],"b":1}' WHERE document IS NOT NULL""")
    found = compared(feed, source, "d.everything")
    assert (found.equal, found.different, found.rows) == (True, 7, [])


def test_programs_get_json_and_exit_code_3(feed: Feed, source: MariaDB) -> None:
    source.execute("UPDATE d.words SET n = NULL WHERE word = 'w7'")
    done = verify(feed, "--connect", source.url, "--table", "d.words", "--json")
    (table,) = json.loads(done.out)
    assert (done.code, table["equal"], table["compared"]["different"]) == (3, False, 1)
    assert table["compared"]["rows"] == [{"kind": "different", "key": {"word": "w7"}, "columns": {"n": ["7", None]}}]


def test_nothing_can_be_changed_in_its_session(source: MariaDB) -> None:
    from tidelake.errors import StorageError

    with reader(source.url) as asked:
        for statement in session(SourceCell.mariadb, everything.TS):
            asked.query(statement)
        with pytest.raises(StorageError, match="READ ONLY"):
            asked.query("DELETE FROM d.words")
    assert source.execute("SELECT COUNT(*) FROM d.words") == [(60,)]


def test_a_server_that_is_not_there_is_named_without_the_password(feed: Feed) -> None:
    done = verify(feed, "--connect", "mysql://reader:p%40ss@127.0.0.1:1/?connect_timeout=5")
    assert done.code == 1
    assert "mysql://127.0.0.1:1 cannot be reached" in done.err
    assert "p@ss" not in done.err
    assert "p%40ss" not in done.err


def test_the_same_by_way_of_files(feed: Feed, source: MariaDB, tmp_path: Path) -> None:
    """As `mysql -N -B` would: the SQL, its answers, the next SQL, until the row is shown."""
    source.execute("UPDATE d.everything SET long_ = 'a\\tb\\nc\\\\' WHERE " + where(1))
    asked = ["--source", "mariadb", "--table", "d.everything"]
    done, rounds, files = verify(feed, *asked, "--sql", tmp_path / "0.sql"), 0, list[object]()
    while "not answered" in done.out or not rounds:
        answers = tmp_path / f"{rounds}.tsv"
        answers.write_text(_batch(source, (tmp_path / f"{rounds}.sql").read_text()))
        rounds, files = rounds + 1, [*files, "--answers", answers]
        done = verify(feed, *asked, *files, "--sql", tmp_path / f"{rounds}.sql")
    assert (done.code, rounds) == (3, 3)  # one range, its two parts, the rows of one
    row = f"  different: region=1, id={2**64 - 2}: long_: ~ here, a\\tb\\nc\\ upstream"
    assert done.out.splitlines()[2:] == [row]
    assert verify(feed, "--connect", source.url, "--table", "d.everything").out == done.out


def _batch(source: MariaDB, script: str) -> str:
    import pymysql

    lines: list[str] = []
    with pymysql.connect(unix_socket=str(source.socket), user="root") as connection, connection.cursor() as cursor:
        for statement in script.splitlines()[1:]:
            cursor.execute(statement)
            for row in cursor.fetchall():
                cells = (str(c).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n") for c in row)
                lines.append("\t".join(cells) + "\n")
    return "".join(lines)
