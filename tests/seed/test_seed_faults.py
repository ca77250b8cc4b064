"""Seeds that are refused or cut short: nothing is published, or all of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lake.histories import feeder, rows_of
from tests.lake.killed import Killed, kill_at
from tests.lake.windows import table
from tests.seed.exports.dumpling import Dump, csv, sql
from tidelake.config.lake_paths import certificate_key, seed_reports
from tidelake.config.policy import Policy
from tidelake.errors import ConfigError, QualityError, StorageError
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.seed.stage import seed

K = (("id", "bigint"), ("v", "varchar(20)"))
KEYED = "(`id` BIGINT, `v` VARCHAR(20), PRIMARY KEY (`id`))"
AT = 100

pytestmark = [pytest.mark.usefixtures("spark_app"), pytest.mark.long]


@pytest.fixture
def dump(tmp_path: Path) -> Dump:
    made = Dump(tmp_path / "dump").begin(AT)
    for name in ("k", "twice", "invalid_values"):
        made.table(f"d.{name}", KEYED)
    made.write("d.k.000000000.csv", csv(K, [(b"1", b"a")]) + b'2,"b\\q"\r\n3\r\n')
    made.write("d.twice.000000000.sql", sql("twice", K, [(b"1", b"a"), (b"1", b"b")]))
    made.write("d.invalid_values.000000000.csv", csv(K, [(b"1", b"a"), (b"1x", b"b")]))
    return made


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    made = feeder(tmp_path, "")
    (tmp_path / "lake").mkdir()
    with Lake.of(made.feed) as opened:
        yield opened


def test_what_cannot_be_read_or_does_not_fit_blocks(dump: Dump, lake: Lake) -> None:
    refused = {
        "d.k": ("ROWS_REFUSED", r"2 rows of 1 file cannot be read, the first: d\.k\.000000000\.csv row 2 at byte 17: BAD_VALUE"),
        "d.twice": ("KEY_NOT_UNIQUE", "keys occur twice"),
        "d.invalid_values": (
            "EXPECTATION_FAILED",
            r"d\.invalid_values\.id: 1 value cannot be read as bigint: d\.invalid_values\.000000000\.csv row 2; .*"
            r': \[columns\."d\.invalid_values"\.id\] invalid_values = "null", or "string"',
        ),
    }
    for name, (code, said) in refused.items():
        with pytest.raises(QualityError, match=said) as error:
            seed(lake, str(dump.folder), tables=[name])
        assert (error.value.code, error.value.exit_code) == (code, 3)
        assert newest_cut(lake.catalog, lake.store, "shop") is None
    (report,) = [json.loads(lake.store.read(o.key)) for o in lake.store.objects(seed_reports("shop", "run_1_1"))]
    assert [(r["row"], r["code"]) for r in report["examples"]] == [(2, "BAD_VALUE"), (3, "BAD_STRUCTURE")]
    lake.feed = lake.feed.model_copy(update={"policy": Policy(on_reject="publish_incomplete")})
    assert seed(lake, str(dump.folder), tables=["d.k"]).refused == 2
    said = read_certificate(lake.store, "shop", 1)
    assert (said["incomplete"], said["seed"]["refused"], said["seed"]["files"][0]["rows"]) == (True, 2, 1)
    assert rows_of(lake, "d.k") == table(("1", "a"))
    with pytest.raises(ConfigError, match="has published cut 1") as wrong:
        seed(lake, str(dump.folder))
    assert (wrong.value.code, wrong.value.exit_code) == ("CUT_EXISTS", 2)


@pytest.mark.parametrize(("step", "nth"), [("create", 1), ("declare", 0), ("advance", 0), ("advance", 1), ("record", 0), ("append", 0)])
def test_a_seed_that_is_killed_is_finished_by_the_same_command(dump: Dump, lake: Lake, step: str, nth: int) -> None:
    dump.write("d.k.000000000.csv", csv(K, [(b"1", b"a")]))
    dump.write("d.twice.000000000.sql", sql("twice", K, [(b"1", b"a"), (b"2", b"b")]))
    names = ["d.k", "d.twice"]
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, step, nth)
        if step == "declare":
            patch.setattr("tidelake.seed.stage.declare", _killed)
        with pytest.raises(Killed):
            seed(lake, str(dump.folder), tables=names)
    done = seed(lake, str(dump.folder), tables=names)
    assert (done.cut, done.rows) == (1, {"d.k": 1, "d.twice": 2})
    assert rows_of(lake, "d.twice") == table(("1", "a"), ("2", "b"))
    assert lake.store.head(certificate_key("shop", 1)) is not None
    with pytest.raises(StorageError, match="before the export") as before:
        rows_of(lake, "d.k", AT - 1)
    assert before.value.code == "BEFORE_SEED"


def _killed(*_: object) -> None:
    raise Killed("declare")
