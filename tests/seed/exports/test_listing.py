"""Which files an export has, by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.seed.exports.dumpling import Dump
from tidelake.errors import ConfigError, ContractError
from tidelake.io.storage import open_store
from tidelake.seed.exports.export_files import chosen, definition, list_export


@pytest.fixture
def dump(tmp_path: Path) -> Dump:
    made = Dump(tmp_path).begin()
    made.table("d.k", "(`id` BIGINT PRIMARY KEY)")
    return made


def test_tables_files_and_what_holds_no_rows_are_told_apart(dump: Dump) -> None:
    for name in ("d.k.000000001.csv", "d.k.0000000000001.csv.gz", "x%2Ey.a%2Fb.000000000.sql.zst", "d.p/part-0.parquet", "d.q.parquet"):
        dump.write(name, b"") if "/" not in name else (dump.folder / "d.p").mkdir()
    (dump.folder / "d.p" / "part-0.parquet").write_bytes(b"1234")
    for name in ("d.v-schema.sql", "d.v-schema-view.sql", "d.s-schema-sequence.sql", "p-placement-policy-create.sql", "_SUCCESS"):
        dump.write(name, b"")
    found = list_export(open_store(str(dump.folder)))
    assert {t.name: [f.key for f in t.files] for t in found.tables} == {
        "d.k": ["d.k.0000000000001.csv.gz", "d.k.000000001.csv"],
        "d.p": ["d.p/part-0.parquet"],
        "d.q": ["d.q.parquet"],
        "`x.y`.a/b": ["x%2Ey.a%2Fb.000000000.sql.zst"],
    }
    assert found.others == ("d.s", "d.v")
    assert [t.bytes for t in chosen(found, ["D.P"], open_store(str(dump.folder)))] == [4]


@pytest.mark.parametrize("name", ["d.k.000000000.csv.snappy", "d.k.csv", "d.k.000000000.csv.lz4", "rows.txt", "sub/d.k.000000000.csv"])
def test_a_file_that_may_hold_rows_is_never_passed_over(dump: Dump, name: str) -> None:
    (dump.folder / "sub").mkdir()
    dump.write(name, b"1\n")
    with pytest.raises(ConfigError, match=name) as error:
        list_export(open_store(str(dump.folder)))
    assert error.value.code == "UNKNOWN_FILE"


def test_a_folder_without_tables_and_a_table_that_is_not_there_are_refused(dump: Dump, tmp_path: Path) -> None:
    store = open_store(str(dump.folder))
    with pytest.raises(ConfigError, match=r"its tables: d\.k"):
        chosen(list_export(store), ["d.other"], store)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError) as error:
        list_export(open_store(str(tmp_path / "empty")))
    assert error.value.code == "NOT_AN_EXPORT"


def test_create_table_is_read_compressed_or_not(dump: Dump) -> None:
    store = open_store(str(dump.folder))
    dump.write("d.z-schema.sql.zst", b"CREATE TABLE `z` (`id` BIGINT PRIMARY KEY, `v` INT AS (`id`) VIRTUAL);")
    dump.write("d.g-schema.sql.gz", b"CREATE TABLE `other` (`id` BIGINT PRIMARY KEY);")
    tables = {t.name: t for t in list_export(store).tables}
    found = definition(store, tables["d.z"])
    assert found is not None
    assert ([c.name for c in found.visible], found.primary_key) == (["id"], ("id",))
    with pytest.raises(ContractError, match=r"expected one CREATE TABLE of d\.g"):
        definition(store, tables["d.g"])
