"""check: settings, layouts and rules that are right by themselves and do not go together."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli import feeds
from tests.cli.calls import call
from tests.cli.checked import error, errors

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TIDELAKE_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("${TIDELAKE_ARCHIVE}/open", "gs://bucket/open", "source: uri: gs:// is not read; allowed: s3://bucket/prefix ("),
        ("${TIDELAKE_LAKE}", f"abfss://{SECRET}@x/lake", "lake: uri: abfss:// is not read; allowed: s3://bucket/prefix ("),
        ("[lake]", '[lake]\ncatalog = "mysql://u:hunter2@h/d"', "lake.catalog: found a 'mysql' URI; allowed: jdbc:sqlite:<path>, "),
        ("[lake]", '[watermark]\nfrom = "checkpoints"\nuri = "hdfs://x/c.json"\n[lake]', "watermark: uri: hdfs:// is not read; allowed: "),
        ('jsonl"', 'jsonl"\nclaim_check = "wasb://x"', "source: claim_check: wasb:// is not read; allowed: s3://bucket/prefix ("),
    ],
)
def test_storage_and_catalogs_that_are_not_read_are_told_before_anything_runs(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in feeds.FEED
    feeds.write(tmp_path, feed=feeds.FEED.replace(old, new, 1))
    found = error(tmp_path)
    assert said in found
    assert SECRET not in found


@pytest.mark.parametrize(
    ("protocol", "layout", "said"),
    [
        (
            "avro",
            "confluent-json-nested",
            "does not keep messages of protocol 'avro' whole; the layout is for canal-json, debezium",
        ),
        ("craft", "aiven-jsonl-string", "layout 'aiven-jsonl-string' does not keep messages of protocol 'craft' whole"),
        ("simple-avro", "kcat", "layout 'kcat' does not keep messages of protocol 'simple-avro' whole"),
        ("open", "confluent-bin", "layout 'confluent-bin' does not keep messages of protocol 'open' whole"),
        ("open", "secor", "protocol 'open' needs Kafka keys, and layout 'secor' holds values only"),
        ("avro", "confluent-avro", "protocol 'avro' writes deletes as null values, which layout 'confluent-avro' loses"),
    ],
)
def test_a_layout_that_cannot_carry_the_protocol_is_told(tmp_path: Path, protocol: str, layout: str, said: str) -> None:
    text = feeds.FEED.replace('protocol = "open"', f'protocol = "{protocol}"').replace("aiven-jsonl", layout)
    if protocol == "avro":
        text += '[avro]\nschemas = "http://registry"\n[watermark]\nfrom = "checkpoints"\nuri = "s3://b/c.json"\n'
    feeds.write(tmp_path, feed=text)
    assert said in error(tmp_path)


TYPED = """CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, note VARCHAR(20), amount DECIMAL(10,2), at DATETIME, raw BLOB, secret TEXT);"""
MASKED = feeds.FEED + '[columns."shop.orders".secret]\nmask = "drop"\n'


def rule(kind: str, **arguments: object) -> str:
    return f'[[expect]]\ntype = "expect_{kind}"\n' + "".join(f"{name} = {json.dumps(value)}\n" for name, value in arguments.items())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            rule("column_values_to_not_be_null", column="nots"),
            "shop.orders has no column 'nots' in the lake, by tables.sql and feed.toml",
        ),
        (
            rule("column_values_to_not_be_null", column="nots"),
            "; did you mean note? If a statement adds it later, write `later = ",
        ),
        (rule("column_values_to_be_unique", column="secret"), "has no column 'secret' in the lake"),
        (rule("compound_columns_to_be_unique", column_list=["id", "n"]), "has no column 'n' in the lake"),
        (rule("column_pair_values_to_be_equal", column_A="id", column_B="x"), "has no column 'x' in the lake"),
        (rule("column_values_to_match_strftime_format", column="at", strftime_format="%Y"), "is for text; at is timestamp_ntz in the lake"),
        (rule("column_values_to_be_between", column="note", min_value=1), "min_value 1 cannot be compared with its values; note is string"),
        (rule("column_mean_to_be_between", column="note", min_value=1), "expect_column_mean_to_be_between is for numbers; note is string"),
        (
            rule("column_values_to_be_between", column="at", min_value=1),
            "min_value 1 cannot be compared with its values; at is timest",
        ),
        (rule("column_values_to_be_in_set", column="id", value_set=[1, "x", 2.5]), "value_set: no value is ever 'x', 2.5; id is bigint in"),
        (
            rule("column_values_to_not_be_null", column="id", later="yes"),
            "later: found 'yes'; true where a later statement adds",
        ),
    ],
)
def test_a_rule_that_its_table_cannot_meet_is_told(tmp_path: Path, wrong: str, said: str) -> None:
    feeds.write(tmp_path, feed=MASKED, tables=TYPED, rules=feeds.RULES + wrong)
    found = error(tmp_path)
    assert said in found
    assert "shop.orders.toml: [[expect]] 2: " in found


def test_rules_that_tables_and_recorded_statements_can_meet_are_right(tmp_path: Path) -> None:
    rules = [
        rule("column_values_to_not_be_null", column="NOTE"),
        rule("column_values_to_not_be_null", column="added"),
        rule("column_values_to_not_be_null", column="sent_later", later=True),
        rule("column_values_to_not_be_null", column="_commit_ts"),
        rule("column_to_exist", column="someday"),
        rule("column_values_to_match_regex", column="note", regex="^a"),
        rule("column_values_to_match_regex", column="id", regex="^1"),
        rule("column_values_to_be_between", column="amount", min_value=0.5),
        rule("column_values_to_be_between", column="at", min_value="2020-01-01"),
        rule("column_values_to_be_in_set", column="amount", value_set=["1.50", 2]),
    ]
    folder = feeds.write(tmp_path, tables=TYPED, rules="".join(rules))
    added = {"commit_ts": 463368564662075392, "database": "shop", "query": "ALTER TABLE orders ADD COLUMN added INT"}
    (folder / "ddl.jsonl").write_text(json.dumps(added))
    assert errors(tmp_path) == []


def test_before_the_first_cut_land_and_run_say_it_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = feeds.FEED.replace("${TIDELAKE_ARCHIVE}", str(tmp_path / "archive")).replace("${TIDELAKE_LAKE}", str(tmp_path / "lake"))
    feeds.write(tmp_path / "schemas", feed=text, rules=rule("column_values_to_not_be_null", column="nots"))
    monkeypatch.setattr("tidelake.land.land_hour", None)  # what comes next
    for command in ("land", "run"):
        done = call(command, "--feed", "shop", "--hour", "2026-01-05T10", "--schemas", tmp_path / "schemas")
        assert done.code == 2
        assert "shop.orders has no column 'nots' in the lake" in done.err


def test_variables_that_are_not_read_are_told_when_they_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feeds.write(tmp_path, feed=feeds.FEED)
    monkeypatch.setenv("TIDELAKE_ARCHIVE", f"gs://{SECRET}")
    monkeypatch.setenv("TIDELAKE_LAKE", str(tmp_path / "lake"))
    done = call("run", "--feed", "shop", "--hour", "2026-01-05T10", "--schemas", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "source: uri: gs:// is not read; allowed: s3://bucket/prefix (" in done.err
    assert SECRET not in done.err
