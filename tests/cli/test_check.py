"""check: every file of every feed, without data and without variables; all that is wrong at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tests.cli import feeds
from tests.cli.calls import call
from tests.cli.checked import error, errors

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TIDELAKE_")]:
        monkeypatch.delenv(name)


def test_the_feeds_of_this_checkout_are_right() -> None:
    done = call("check", "--schemas", CHECKOUT / "schemas")
    assert (done.code, done.err) == (0, "")
    said = [line for line in done.out.splitlines() if not line.startswith("  note: ")]
    assert [line.partition(":")[0] for line in said] == sorted(p.name for p in (CHECKOUT / "schemas").iterdir() if p.is_dir())
    assert all(": ok: " in line for line in said)


def test_a_right_feed_is_summed_up_and_its_unset_variables_are_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feeds.write(tmp_path)
    monkeypatch.setenv("TIDELAKE_LAKE", f"s3://{SECRET}")
    done = call("check", "--schemas", tmp_path)
    assert done.code == 0
    assert done.out.splitlines() == [
        "shop: ok: open, 1 table, 1 expectation",
        "  note: TIDELAKE_ARCHIVE is not set here; it must be where the feed runs",
    ]


def test_a_feed_of_live_topics_is_checked_without_its_variables_down_to_the_names_of_its_settings(tmp_path: Path) -> None:
    head, _, tail = feeds.FEED.partition("[source]")
    lake = "[lake]" + tail.partition("[lake]")[2]
    live = '[source]\nkind = "kafka"\nuri = "${SERVERS}"\n[source.kafka]\nsasl.password = "${PASSWORD}"\nsecurity.protocol = "SASL_SSL"\n'
    feeds.write(tmp_path / "right", feed=head + live + lake)
    assert errors(tmp_path / "right") == []
    said = call("check", "--schemas", tmp_path / "right").out.splitlines()
    assert "  note: PASSWORD is not set here; it must be where the feed runs" in said
    feeds.write(tmp_path / "wrong", feed=head + live.replace("security.protocol", "security.protocl") + lake)
    assert error(tmp_path / "wrong").startswith(
        'CONFIG: [source.kafka]: No such configuration property: "security.protocl"; its keys are those of'
    )


def test_json_has_errors_notes_and_a_summary_of_every_feed(tmp_path: Path) -> None:
    feeds.write(tmp_path)
    feeds.write(tmp_path, "wrong", feed="protocol = 5")
    done = call("check", "--schemas", tmp_path, "--json")
    found = json.loads(done.out)
    assert done.code == 2
    assert list(found) == ["shop", "wrong"]
    assert all(set(r) == {"errors", "notes", "summary"} for r in found.values())
    assert (found["shop"]["errors"], found["shop"]["summary"]) == ([], "ok: open, 1 table, 1 expectation")


def test_check_reads_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feeds.write(tmp_path / "schemas", feed=feeds.FEED.replace("${TIDELAKE_LAKE}", str(tmp_path / "lake")))
    monkeypatch.chdir(tmp_path)
    assert call("check").code == 0
    assert [p.name for p in tmp_path.iterdir()] == ["schemas"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "partitions = 3",
            'partitions = 3\ntopcis = ["x"]',
            "topcis: unknown key; allowed: protocol, topics, partitions, time_zone, options,",
        ),
        (
            'layout = "aiven-jsonl"',
            'layout = "aiven-jsonl"\nurl = "x"',
            "source.url: unknown key; allowed: kind, uri, layout, ",
        ),
        ("[lake]", "[watermarks]\n[lake]", "watermarks: unknown key; allowed: protocol,"),
        (
            "[lake]",
            "[options]\nenable_tidb_extention = true\n[lake]",
            "options.enable_tidb_extention: unknown key; allowed: enable_tidb_ext",
        ),
        ("partitions = 3", 'partitions = "3"', "partitions: the number of partitions of every topic, or a table"),
        ("partitions = 3", "partitions = 0", "(found 0)"),
        ('topics = ["shop.open"]', 'topics = "shop.open"', "topics: should be a list (found 'shop.open')"),
        ('topics = ["shop.open"]', 'topics = ["/shop(/"]', "topics: not a regular expression: "),
        ('topics = ["shop.open"]\n', "", "topics: missing"),
        ('protocol = "open"', 'protocol = "opne"', "protocol: Input should be 'open', 'craft', 'avro', 'canal-json', "),
        ('protocol = "open"', 'protocol = "avro"', "the file: protocol avro needs [avro] schemas"),
        ('layout = "aiven-jsonl"', "", "source: an archive needs `layout`"),
        ('layout = "aiven-jsonl"', 'layout = "json"', "source.layout: Input should be 'aiven-jsonl', 'aiven-jsonl-string', "),
        ("[lake]", '[policy]\nzero_date = "NULL"\n[lake]', "policy.zero_date: Input should be 'null', 'string' or 'reject' (found 'NULL')"),
        ("[lake]", '[watermark]\nfrom = "checkpoints"\n[lake]', 'watermark: from = "checkpoints" needs `uri`'),
        (
            "[lake]",
            '[policy.on_finding]\nOVERLAP_CONFLICT = "ignore"\n[lake]',
            "policy.on_finding: OVERLAP_CONFLICT should be 'block' or 'warn', as messages are left out",
        ),
        ("[lake]", '[lake]\nnamespace = "{tabel}"', "lake.namespace: letters, digits, _ and -, {feed} and {database} are allowed"),
        ("partitions = 3", 'partitions = 3\ntime_zone = "Mars/Base"', "time_zone: a name like Asia/Shanghai, or an offset like +08:00"),
        ("partitions = 3", 'partitions = {"other" = 3}', "topic 'shop.open' is missing"),
    ],
)
def test_a_wrong_key_is_named_with_what_was_found_and_what_is_allowed(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in feeds.FEED
    folder = feeds.write(tmp_path, feed=feeds.FEED.replace(old, new))
    found = error(tmp_path)
    assert f"{folder / 'feed.toml'}: " in found
    assert said in found


def test_a_feed_that_is_no_toml_is_told_with_line_and_column(tmp_path: Path) -> None:
    folder = feeds.write(tmp_path, feed=feeds.FEED.replace("partitions = 3", "partitions = three"))
    assert f"{folder / 'feed.toml'}: not TOML: Invalid value (at line 3, column 14)" in error(tmp_path)


def test_a_name_that_no_feed_may_have_is_told(tmp_path: Path) -> None:
    feeds.write(tmp_path, "Shop!")
    assert "the folder's name 'Shop!' is the feed's name; use a-z, 0-9, _ and -, a letter first" in error(tmp_path)


def test_a_feed_needs_no_tables_sql(tmp_path: Path) -> None:
    feeds.write(tmp_path, tables=None)
    done = call("check", "--schemas", tmp_path)
    assert done.code == 0
    assert done.out.startswith("shop: ok: open, 0 tables, 1 expectation\n")


@pytest.mark.parametrize(
    ("sql", "line", "said"),
    [
        ("CREATE TABLE shop.x (a INT);\n\nCREATE TABLE shop.y (a INT", 3, "the statement ends too early"),
        ("CREATE TABLE shop.x (a INT);\nDROP TABLE shop.x;", 2, "only USE, CREATE DATABASE and CREATE TABLE with its columns belong here"),
        ("\nCREATE TABLE x (a INT);", 2, "'x' has no database; write USE `database`; first, or qualify the name"),
        ("CREATE TABLE a.x (a INT);\n-- note\nCREATE TABLE A.X (a INT);", 3, "A.X is defined twice"),
        ("CREATE TABLE shop.x (a QUATERNION);", None, "shop.x: column 'a': no lake type for MySQL type 'quaternion'"),
        (
            "CREATE TABLE shop.x (a INT);\nCREATE TABLE shop.y (a CHAR DEFAULT 'x);\n;",
            None,
            'not SQL from line 2 on: "CREATE TABLE shop.y',
        ),
        ("CREATE TABLE shop.x (a INT); /* not closed", None, "not SQL from line 1 on: "),
    ],
)
def test_a_wrong_statement_is_told_with_file_and_line(tmp_path: Path, sql: str, line: int | None, said: str) -> None:
    folder = feeds.write(tmp_path, tables=sql)
    found = error(tmp_path)
    assert (f"{folder / 'tables.sql'}:{line}: " if line else f"{folder / 'tables.sql'}: ") in found
    assert said in found


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("[[expect]]\n", "[[expect]] 1: type: found None; a Great Expectations type, such as expect_column_values_to_not_be_null"),
        ('[[expect]]\ntype = "not_null"\n', "[[expect]] 1: type: found 'not_null'"),
        ('[[expect]]\ntype = "expect_colum_values_to_be_unique"\ncolumn = "id"\n', "did you mean expect_column_values_to_be_unique"),
        (feeds.RULES + '[[expect]]\ntype = "expect_column_to_exist"\ncolum = "id"\n', "[[expect]] 2: "),
        (feeds.RULES + 'severity = "fatal"\n', "[[expect]] 1: severity: found 'fatal'; critical or warning"),
        ("[expects]\n", "unknown keys ['expects']; a file holds [[expect]] tables"),
        ("expect = 5\n", "expect: found 5; a file holds [[expect]] tables"),
        ("[[expect]]\ntype = expect\n", "not TOML: Invalid value (at line 2, column 8)"),
    ],
)
def test_a_wrong_expectation_is_told_with_file_number_and_key(tmp_path: Path, rules: str, said: str) -> None:
    folder = feeds.write(tmp_path, rules=rules)
    found = error(tmp_path)
    assert f"{folder / 'expectations' / 'shop.orders.toml'}: " in found
    assert said in found


def test_an_expectations_file_without_a_database_in_its_name_is_told(tmp_path: Path) -> None:
    folder = feeds.write(tmp_path)
    (folder / "expectations" / "orders.toml").write_text(feeds.RULES)
    assert "the file's name must name the table; name it <database>.<table>.toml" in error(tmp_path)


def test_expectations_of_a_table_that_is_not_defined_are_a_note(tmp_path: Path) -> None:
    folder = feeds.write(tmp_path)
    (folder / "expectations" / "shop.later.toml").write_text(feeds.RULES)
    done = call("check", "--schemas", tmp_path)
    assert done.code == 0
    assert "note: expectations for shop.later, which tables.sql does not define (fine if it is created later)" in done.out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", ":2: "),
        ('{"commit_ts": 5, "database": "shop"}', ":2: query: missing"),
        ('{"commit_ts": "5", "database": "shop", "query": "DROP TABLE x"}', ":2: members of a wrong type"),
        ('{"commit_ts": 5, "database": "shop", "query": "CREATE TABLE ("}', ":2: "),
    ],
)
def test_a_wrong_recorded_statement_is_told_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    folder = feeds.write(tmp_path)
    (folder / "ddl.jsonl").write_text('{"commit_ts": 4, "database": "shop", "query": "DROP TABLE x"}\n' + line + "\n")
    assert f"{folder / 'ddl.jsonl'}{said}" in error(tmp_path)


@pytest.mark.parametrize("content", [None, "[]"])
def test_avro_schemas_that_are_missing_or_none_are_told(tmp_path: Path, content: str | None) -> None:
    text = feeds.FEED.replace('"open"', '"avro"', 1).replace(
        "[lake]", '[watermark]\nfrom = "checkpoints"\nuri = "/x"\n[avro]\nschemas = "s.json"\n[lake]'
    )
    folder = feeds.write(tmp_path, feed=text)
    if content is not None:
        (folder / "s.json").write_text(content)
    assert f"Avro schemas {folder / 's.json'}: " in error(tmp_path)


def test_everything_that_is_wrong_is_told_at_once_over_all_files_and_feeds(tmp_path: Path) -> None:
    spoiled = feeds.FEED.replace("partitions = 3", "partitions = 0\nx = 1").replace("aiven-jsonl", "nothing")
    folder = feeds.write(tmp_path, "a", feed=spoiled, tables="DROP TABLE x;", rules='[[expect]]\ntype = "x"\n')
    (folder / "ddl.jsonl").write_text("{\n")
    feeds.write(tmp_path, "b", feed="protocol = ")
    feeds.write(tmp_path, "c")
    found = errors(tmp_path)
    assert [next(name for name in ("feed.toml", "tables.sql", "ddl.jsonl", "shop.orders.toml") if name in e) for e in found] == [
        "feed.toml",
        "tables.sql",
        "ddl.jsonl",
        "shop.orders.toml",
        "feed.toml",
    ]
    assert all(said in found[0] for said in ("partitions: ", "x: unknown key", "source.layout: "))
    done = call("check", "--schemas", tmp_path)
    assert done.code == 2
    assert [line.partition(":")[0] for line in done.out.splitlines()] == ["a"] * 4 + ["b", "c", "  note", "  note"]


def test_what_variables_hold_is_never_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TIDELAKE_ARCHIVE", "TIDELAKE_LAKE", "ZONE", "TOPIC"):
        monkeypatch.setenv(name, SECRET)
    feeds.write(
        tmp_path, feed=feeds.FEED.replace("partitions = 3", 'partitions = 3\ntime_zone = "${ZONE}"').replace("shop.open", "${TOPIC}!")
    )
    feeds.write(tmp_path, "right")
    for more in ([], ["--json"], ["--debug"]):
        done = call("check", "--schemas", tmp_path, *more)
        assert done.code == 2
        assert "${TOPIC}!" in done.out
        assert SECRET not in done.out + done.err


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_a_folder_without_feeds_is_wrong_use(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    done = call("check", "--schemas", tmp_path / name)
    assert (done.code, done.out) == (2, "")
    assert f"no feeds in {tmp_path / name}; a feed is a folder with a feed.toml" in done.err


def test_what_the_archiver_s_client_does_not_know_is_named_with_its_section(tmp_path: Path) -> None:
    text = feeds.FEED.replace("aiven-jsonl", "canonical").replace("[lake]", '[source.archiver]\nservers = "${BROKERS}"\n[lake]')
    folder = feeds.write(tmp_path, feed=text)
    assert errors(tmp_path) == []
    assert "BROKERS is not set here" in call("check", "--schemas", tmp_path).out
    (folder / "feed.toml").write_text(text.replace("\n[lake]", '\nkafka.security.protocl = "ssl"\n[lake]'))
    (said,) = errors(tmp_path)
    assert said.startswith('CONFIG: [source.archiver.kafka]: No such configuration property: "security.protocl"')


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (
            "open",
            'open messages carry a commit ts: [watermark] from = "messages" gives stronger guarantees than "offsets" (docs/offsets.md)',
        ),
        (
            "canal-json",
            'if TiCDC is the source, enable-tidb-extension and [watermark] from = "messages" give stronger guarantees (docs/offsets.md)',
        ),
        ("canal", None),
    ],
)
def test_a_feed_ordered_by_offsets_that_need_not_be_is_told(tmp_path: Path, protocol: str, said: str | None) -> None:
    text = feeds.FEED.replace('"open"', f'"{protocol}"', 1).replace("[lake]", '[watermark]\nfrom = "offsets"\n[lake]')
    feeds.write(tmp_path, feed=text)
    done = call("check", "--schemas", tmp_path, "--json")
    notes = [n for n in json.loads(done.out)["shop"]["notes"] if "offsets" in n]
    assert (done.code, notes) == (0, [said] if said else [])


def test_feeds_that_need_one_namespace_of_one_catalog_are_told_so(tmp_path: Path) -> None:
    feeds.write(tmp_path, "first")
    feeds.write(tmp_path, "second")
    said = errors(tmp_path)
    assert said[1] == (
        f"CONFIG: {tmp_path / 'second' / 'feed.toml'}: lake.namespace: feed 'first' also needs shop, shop_changelog, shop_past, "
        'shop_changelog_past of the same catalog; set [lake] namespace = "{feed}_{database}" in one of them; docs/ownership.md'
    )
    assert [line.partition(": feed ")[2][:8] for line in said] == ["'second'", "'first' "]
    for name in ("first", "second"):
        with (tmp_path / name / "feed.toml").open("a") as file:
            file.write('namespace = "${STAGE}_{database}"\n')
    assert len(errors(tmp_path)) == 2


def test_feeds_apart_by_namespace_lake_or_database_share_nothing(tmp_path: Path) -> None:
    feeds.write(tmp_path, "first")
    feeds.write(tmp_path, "apart", feed=feeds.FEED + 'namespace = "{feed}_{database}"\n')
    feeds.write(tmp_path, "varies", feed=feeds.FEED + 'namespace = "${STAGE}_{database}"\n')
    feeds.write(tmp_path, "elsewhere", feed=feeds.FEED.replace("${TIDELAKE_LAKE}", "${TIDELAKE_LAKE}/2"))
    feeds.write(tmp_path, "other", tables=feeds.TABLES.replace("shop", "warehouse"), rules=None)
    assert errors(tmp_path) == []
    assert "namespace" not in call("check", "--schemas", tmp_path).out


def test_feeds_of_one_namespace_whose_databases_are_not_known_get_a_note(tmp_path: Path) -> None:
    feeds.write(tmp_path, "first")
    feeds.write(tmp_path, "second", tables=None, rules=None)
    assert errors(tmp_path) == []
    said = [line for line in call("check", "--schemas", tmp_path).out.splitlines() if "lake.namespace" in line]
    assert [line.partition("lake.namespace: ")[2] for line in said] == [
        f"feed '{other}' also has {{database}}; only one of them can publish a database that both carry: set [lake] namespace = "
        '"{feed}_{database}" in one of them; docs/ownership.md'
        for other in ("second", "first")
    ]


def test_feeds_whose_names_differ_in_a_dash_alone_share_a_table(tmp_path: Path) -> None:
    apart = feeds.FEED + 'namespace = "x_{database}"\n'
    feeds.write(tmp_path, "a-b")
    feeds.write(tmp_path, "a_b", feed=apart)
    assert errors(tmp_path)[0] == (
        "CONFIG: feeds 'a-b' and 'a_b' would share table _tidelake.a_b_events of one catalog; give one of them a name that differs in "
        "more than - and _"
    )


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (
            "craft",
            "types: tables.sql defines no table, and craft messages do not carry DECIMAL precision and scale, ENUM and SET elements; ",
        ),
        ("simple-json", "types: taken from simple-json messages, because tables.sql defines no table"),
    ],
)
def test_a_feed_without_definitions_is_told_where_its_types_come_from(tmp_path: Path, protocol: str, said: str) -> None:
    folder = feeds.write(tmp_path, feed=feeds.FEED.replace('"open"', f'"{protocol}"', 1))
    notes = json.loads(call("check", "--schemas", tmp_path, "--json").out)["shop"]["notes"]
    assert not [n for n in notes if n.startswith("types: ")]
    (folder / "tables.sql").unlink()
    notes = json.loads(call("check", "--schemas", tmp_path, "--json").out)["shop"]["notes"]
    assert [n[: len(said)] for n in notes if n.startswith("types: ")] == [said]
