"""Tables with any name: what `asof` writes is below the folder it was given, and every command takes every name. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.cli.calls import Called, call
from tests.cli.lakes import TS, lake_of
from tests.lake import lakes
from tidelake.archives import topics_of
from tidelake.cli.tables import Format, _file_name
from tidelake.config.feed import Feed, TablePolicy
from tidelake.config.policy import ColumnPolicy
from tidelake.config.table_name import file_stem, of_file_stem, parse, parse_several, written
from tidelake.errors import ConfigError, StorageError
from tidelake.history.contract import read_expectations
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.io.storage import open_store
from tidelake.wire.masks import marks_of, masked_schema

RULE = '[[expect]]\ntype = "expect_table_row_count_to_be_between"\nmin_value = 1\n'
NAMES = {  # (database, table) → what commands call it, and its file
    ("shop", "orders"): ("shop.orders", "shop.orders.jsonl"),
    ("..", "t"): ("`..`.t", "%2E%2E.t.jsonl"),
    ("../../escaped", "t"): ("`../../escaped`.t", "%2E%2E%2F%2E%2E%2Fescaped.t.jsonl"),
    ("d", "a/b"): ("d.a/b", "d.a%2Fb.jsonl"),
    ("a.b", "c"): ("`a.b`.c", "a%2Eb.c.jsonl"),
    ("a", "b.c"): ("a.`b.c`", "a.b%2Ec.jsonl"),
    ("d", "ti`ck"): ("d.`ti``ck`", "d.ti%60ck.jsonl"),
    ("d", "数据"): ("d.数据", "d.数据.jsonl"),
}


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    return lake_of(tmp_path_factory.mktemp("deep") / "er" / "lake", list(NAMES))


def asof(feed: Feed, *arguments: object) -> Called:
    return call("asof", "--feed", "shop", "--schemas", feed.folder.parent, *arguments)


def test_every_table_is_written_below_the_folder_and_nothing_beside_it(feed: Feed, tmp_path: Path) -> None:
    out = tmp_path / "a" / "b" / "out"
    done = asof(feed, "--table", "all", "--format", "jsonl", "-o", out)
    assert done.code == 0, done.err
    written = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert written == {f"a/b/out/{file}" for _, file in NAMES.values()}
    assert [(out / file).read_text() for _, file in NAMES.values()] == [f'{{"id":"{n}"}}\n' for n in range(len(NAMES))]


def test_the_name_that_a_file_bears_is_the_table_s(feed: Feed) -> None:
    for (database, table), (_, file) in NAMES.items():
        assert file_stem(database, table) == file.removesuffix(".jsonl")
        assert of_file_stem(file.removesuffix(".jsonl")) == (database, table)


@pytest.mark.parametrize(("number", "written"), list(enumerate(name for name, _ in NAMES.values())))
def test_every_command_takes_the_name_that_others_print(feed: Feed, number: int, written: str) -> None:
    done = asof(feed, "--table", written, "--format", "jsonl")
    assert (done.code, done.out) == (0, f'{{"id":"{number}"}}\n'), done.err
    assert (
        f"{written}: unchanged"
        in call("diff", "--feed", "shop", "--schemas", feed.folder.parent, "--ts", TS, "--ts", TS, "--table", written).out
    )
    assert (
        f"FROM {_backquoted(*parse(written))}" in call("verify", "--feed", "shop", "--schemas", feed.folder.parent, "--table", written).out
    )


def _backquoted(*parts: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def test_one_table_without_a_path_is_written_into_the_working_folder(feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert asof(feed, "--table", "`../../escaped`.t", "--format", "parquet").code == 0
    assert [p.name for p in tmp_path.rglob("*")] == ["%2E%2E%2F%2E%2E%2Fescaped.t.parquet"]


@pytest.mark.parametrize("command", [["asof"], ["changelog"], ["diff", "--ts", TS, "--ts", TS], ["verify"], ["ddl"]])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a.b.c", "'a.b.c' can be read in several ways; write a.`b.c` or `a.b`.c"),
        (
            "orders",
            "'orders' names no table: it has no database or no table; write it db.table, a part with a dot in backquotes",
        ),
        ("`a.b", "'`a.b' names no table: it has an empty part or an unpaired backquote"),
        ("`a`b.c", "'`a`b.c' names no table: it has something between a backquote and the next dot"),
        ("a.b,c.d", "'a.b,c.d' names no table: it names several tables"),
    ],
)
def test_a_name_that_is_none_is_wrong_use(feed: Feed, command: list[str], text: str, said: str) -> None:
    done = call(*command, "--feed", "shop", "--schemas", feed.folder.parent, "--table", text)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: TABLE_NAME: {said}")


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), min_size=1, max_size=3))
def test_what_is_written_is_read_again(names: list[tuple[str, str]]) -> None:
    assert parse_several(", ".join(written(*name) for name in names)) == names


@given(st.text(st.characters(exclude_categories=()), min_size=1), st.text(st.characters(exclude_categories=()), min_size=1))
def test_a_file_s_name_is_one_of_its_folder_and_says_the_table(database: str, table: str) -> None:
    stem = file_stem(database, table)
    assert of_file_stem(stem) == (database, table)
    assert Path("folder", stem).parent == Path("folder")
    assert stem.isprintable()
    assert stem[0] not in ".-~"


@pytest.mark.parametrize("stem", ["orders", ".t", "a.", ""])
def test_another_file_is_no_table_s(stem: str) -> None:
    assert of_file_stem(stem) is None


def test_a_table_whose_name_no_file_bears_can_be_written_into_one_with_another_name() -> None:
    with pytest.raises(ConfigError, match=r"its file would have a name of 2\d\d bytes.*-o FILE"):
        _file_name(written("数" * 40, "据" * 45), Format.jsonl)


def test_expectations_are_of_the_table_that_their_file_s_name_says(tmp_path: Path) -> None:
    (tmp_path / "expectations").mkdir()
    for name in ("a%2Eb.c", "d.a%2Fb", "d.my table", "logs.a.b"):
        (tmp_path / "expectations" / f"{name}.toml").write_text(RULE)
    assert [e.table for e in read_expectations(tmp_path)] == ["`a.b`.c", "d.a/b", "d.my table", "logs.`a.b`"]
    (tmp_path / "expectations" / "orders.toml").touch()
    with pytest.raises(ConfigError, match=r"name it <database>\.<table>\.toml, docs/names\.md"):
        read_expectations(tmp_path)


def test_a_feed_s_settings_of_a_table_are_found_by_its_quoted_name(tmp_path: Path) -> None:
    made = lakes.feed(tmp_path, columns={"`a.b`.`c`": {"v": ColumnPolicy(mask="null")}}, tables={"`shop`.orders": TablePolicy(buckets=4)})
    assert made.rules_of([written("a.b", "c")], ["v"]).mask == "null"
    assert made.tables["shop.orders"].buckets == 4
    row_schema = RowSchema((SchemaColumn("v", None),))
    assert masked_schema(row_schema, marks_of(made), "a.b", "c").columns[0].mask == "null"
    assert masked_schema(row_schema, marks_of(made), "a", "b.c").columns[0].mask is None
    with pytest.raises(ValidationError, match=r"'a\.b\.c' can be read in several ways; write a\.`b\.c` or `a\.b`\.c"):
        lakes.feed(tmp_path, columns={"a.b.c": {"v": ColumnPolicy(mask="null")}})


@pytest.mark.parametrize("key", ["../x", "a/../../x", "/etc/x", "a\0b", ".."])
def test_no_key_leads_out_of_a_local_store(tmp_path: Path, key: str) -> None:
    store = open_store(str(tmp_path / "lake"))
    source = tmp_path / "file"
    source.write_bytes(b"1")
    tries = [
        lambda: store.write(key, b"1"),
        lambda: store.put_if_absent(key, b"1"),
        lambda: store.upload(key, source),
        lambda: store.read(key),
        lambda: store.head(key),
        lambda: store.delete(key),
        lambda: store.folders(f"{key}/"),
        lambda: list(store.objects(f"{key}/")),
    ]
    for attempt in tries:
        with pytest.raises(StorageError, match="BAD_KEY"):
            attempt()
    assert [p.name for p in tmp_path.rglob("*")] == ["file"]


def test_folders_that_are_no_topics_are_none(tmp_path: Path) -> None:
    made = lakes.feed(tmp_path, topics=("/.*/",))

    class Named(type(open_store(str(tmp_path)))):  # type: ignore[misc]
        def folders(self, prefix: str = "") -> list[str]:
            return [".", "..", "shop"]

    assert topics_of(made, Named(tmp_path)) == ["shop"]
    with pytest.raises(ValidationError, match="different names of topics"):
        lakes.feed(tmp_path, topics=("..",))
