"""Whole workloads: the same seed gives the same bytes, and an archive folds into the truth that is told of it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tidelake.demo.generate import Size, Workload, generate
from tidelake.demo.sinks import PROTOCOLS
from tidelake.io.storage import open_store

ORDER = {"DELETE": 0, "UPDATE": 1, "INSERT": 2}
GRADES = ["new", "like new", "for parts, as is", "seller's pick"]
TAGS = ["sale", "vintage", "handmade", "bulky", "réserve"]


def digests(root: Path) -> dict[str, str]:
    return {p.relative_to(root).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in root.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Workload]:
    root = tmp_path_factory.mktemp("workload")
    return root, generate(open_store(str(root)), rows_per_hour=300, truth=True)


def test_a_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        generate(open_store(str(tmp_path / name)), hours=1, rows_per_hour=200, truth=True, seed=seed)
    first, again, other = (digests(tmp_path / name) for name in ("first", "again", "other"))
    assert first == again
    assert len(first) > 60
    assert {name for name in set(first) & set(other) if first[name] == other[name]} == {"avro_schemas.json"}


def test_every_protocol_tells_of_the_same_rows(made: tuple[Path, Workload]) -> None:
    _, workload = made
    rows = {p: workload.deliveries[p].distinct_row_events for p in PROTOCOLS}
    assert len({rows[p] for p in PROTOCOLS if p != "avro"}) == 1
    assert 0 < rows["avro"] < rows["open"]
    end = workload.hours[-1]
    assert workload.truth("open", end) == workload.truth("craft", end) == workload.truth("canal-json", end)
    assert set(workload.truth("open", end)) - set(workload.truth("avro", end)) == {"bazaar.visits"}


def test_the_resolved_ts_rise_from_hour_to_hour_and_the_truth_is_that_of_the_resolved_ts(made: tuple[Path, Workload]) -> None:
    _, workload = made
    assert [h.hour for h in workload.hours] == [10, 11, 12, 13]
    for protocol in PROTOCOLS:
        resolved = [workload.deliveries[protocol].resolved(h) for h in workload.hours]
        assert resolved == sorted(set(resolved))
        assert resolved[0] > 0
    hour = workload.hours[1]
    assert workload.truth("craft", hour) == workload.history.truth(workload.deliveries["craft"].resolved(hour))


def test_sizes_and_counts_are_those_of_what_was_written(made: tuple[Path, Workload]) -> None:
    root, workload = made
    for protocol in PROTOCOLS:
        sizes = [p.stat().st_size for p in (root / protocol).rglob("*") if p.is_file()]
        assert workload.sizes[protocol] == Size(len(sizes), sum(sizes))
    assert sorted(p.name for p in root.iterdir()) == sorted([*PROTOCOLS, "avro_schemas.json", "checkpoints.json", "truth"])
    assert json.loads((root / "avro_schemas.json").read_text()) == {str(k): v for k, v in workload.avro_schemas.items()}
    assert json.loads((root / "checkpoints.json").read_text()) == workload.deliveries["avro"].checkpoints


def test_the_truth_files_say_what_the_workload_says(made: tuple[Path, Workload]) -> None:
    root, workload = made
    for protocol in PROTOCOLS:
        file = json.loads(gzip.decompress((root / "truth" / f"{protocol}.json.gz").read_bytes()))
        assert file == json.loads(json.dumps(workload.truth_file(protocol)))
        assert [h["hour"] for h in file["hours"]] == [f"2026-01-05T{h}" for h in (10, 11, 12, 13)]
        assert [len(h["ddl"]) for h in file["hours"]] == [2, 5, 8, 8]
        assert all(("unsettled_keys" in h) == (protocol == "avro") for h in file["hours"])
        assert file["hours"][2]["tables"] == workload.truth(protocol, workload.hours[2])


def test_asked_for_one_protocol_nothing_else_is_written(tmp_path: Path) -> None:
    workload = generate(open_store(str(tmp_path)), ["craft"], hours=1, rows_per_hour=200, crashes=())
    assert list(workload.deliveries) == [p.name for p in tmp_path.iterdir()] == ["craft"]
    assert workload.deliveries["craft"].restarts == []


@pytest.mark.parametrize("protocol", ["canal-json", "canal-json-cc"])
def test_an_archive_folds_into_the_truth(protocol: str, tmp_path: Path) -> None:
    """A consumer in forty lines: rows up to M, repeats dropped, in order, by key; multiplicity is that of the fullest replay epoch."""
    workload = generate(open_store(str(tmp_path)), [protocol], hours=1, rows_per_hour=3000, ddl=(), crashes=[20, 40.5])
    hour = workload.hours[0]
    resolved = workload.deliveries[protocol].resolved(hour)
    events = [e for e in read(tmp_path, protocol) if e["_tidb"].get("commitTs", resolved + 1) <= resolved or e["type"] == "TIDB_WATERMARK"]
    truth = workload.truth(protocol, hour)
    assert sum(len(t["rows"]) for t in truth.values()) > 700
    for name, table in truth.items():
        rows = by_key(events, name, table) if table["key"] else multiset(events, name, table)
        assert Counter(map(repr, rows)) == Counter(repr({c: r[c] for c in table["columns"]}) for r in table["rows"]), name


def read(root: Path, protocol: str) -> list[dict[str, Any]]:
    """All messages of an archive, partition by partition in order, as JSON; each knows its replay epoch."""
    out, partition, replay_epoch, resolved = list[dict[str, Any]](), "", 0, 0
    files = [p for p in root.rglob("bazaar*") if p.is_file()]
    for path in sorted(files, key=lambda p: (p.name.split("+")[1], p.parts[-2], int(p.name.split("+")[2].split(".")[0]))):
        if path.name.split("+")[1] != partition:
            partition, replay_epoch, resolved = path.name.split("+")[1], 0, 0
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            packed = json.loads(line) if protocol == "canal-json" else line.split(",")[1]
            event = json.loads(base64.b64decode(packed))
            mark = event["_tidb"].get("watermarkTs")
            replay_epoch += mark is not None and mark < resolved
            resolved = mark or resolved
            out.append(event | {"replay_epoch": replay_epoch})
    return out


def by_key(events: list[dict[str, Any]], name: str, table: dict[str, Any]) -> list[dict[str, Any]]:
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for e in sorted(of(events, name), key=lambda e: (e["_tidb"]["commitTs"], ORDER[e["type"]])):
        new = canonical(e["data"][0], table)
        key = tuple(new[k] for k in table["key"])
        if e["type"] == "DELETE":
            rows.pop(key, None)
        else:
            rows[key] = new
    return list(rows.values())


def multiset(events: list[dict[str, Any]], name: str, table: dict[str, Any]) -> list[dict[str, Any]]:
    copies: Counter[tuple[int, str]] = Counter()
    for e in of(events, name):
        copies[e["replay_epoch"], json.dumps([e["_tidb"]["commitTs"], e["type"], e["data"], e["old"]])] += 1
    counts: dict[str, int] = {}
    for (_, event), n in copies.items():
        counts[event] = max(n, counts.get(event, 0))
    rows: Counter[str] = Counter()
    for event, n in counts.items():
        _, kind, data, old = json.loads(event)
        new = json.dumps(canonical(data[0], table))
        rows[new] += -n if kind == "DELETE" else n
        if kind == "UPDATE":
            rows[json.dumps(canonical(data[0] | old[0], table))] -= n
    assert min(rows.values()) == 0
    return [json.loads(row) for row in rows.elements()]


def of(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [e for e in events if e["type"] in ORDER and f"{e['database']}.{e['table']}" == name]


def canonical(data: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    """A row of Canal-JSON strings as the truth writes it."""
    out: dict[str, Any] = {}
    for column in table["columns"]:
        text, kind = data[column], table["types"][column]
        if text is not None:
            if kind == "bin":
                text = {"hex": text.encode("latin-1").hex()}
            elif kind == "enum":
                text = GRADES[int(text) - 1]
            elif kind == "set":
                text = ",".join(t for i, t in enumerate(TAGS) if int(text) >> i & 1)
            elif kind == "double":
                text = repr(float(text))
        out[column] = text
    return out
