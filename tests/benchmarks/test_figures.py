from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.benchmarks import compare, decoders, landing, spark
from tests.benchmarks.decoders import FILES
from tests.benchmarks.figures import Figure, compared, missed
from tests.benchmarks.results import Results, load, newest, save


def cpu(value: float, **more: object) -> Figure:
    return Figure.model_validate({"value": value, "unit": "Y", "must": 0.3, "aim": 0.15, "ratio": True} | more)


def share(value: float) -> Figure:
    return Figure(value=value, unit="of the writer's speed", must=0.7, more_is_better=True, ratio=True)


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (cpu(0.15), "aim"),
        (cpu(0.151), "kept"),
        (cpu(0.3), "kept"),
        (cpu(0.301), "MISSED"),
        (cpu(0.01, must=None), "aim"),
        (cpu(9, must=None), "kept"),
        (cpu(9, must=None, aim=None), ""),
        (share(0.7), "kept"),
        (share(0.69), "MISSED"),
    ],
)
def test_a_figure_says_which_limit_it_keeps_to(figure: Figure, verdict: str) -> None:
    assert figure.verdict == verdict


def test_only_figures_beyond_their_must_are_missed_and_each_says_its_limit() -> None:
    found = {"a": cpu(0.31), "b": cpu(0.3), "c": share(0.5), "d": Figure(value=1e9, unit="ns")}
    assert missed(found) == ["a is 0.31 Y, must be at most 0.3", "c is 0.5 of the writer's speed, must be at least 0.7"]


def test_a_ratio_is_worse_beyond_the_tolerance_and_a_time_never() -> None:
    old = {"cpu": cpu(0.1), "share": share(0.8), "rows": Figure(value=100, unit="1/s", more_is_better=True), "gone": cpu(1)}
    new = {"cpu": cpu(0.13), "share": share(0.5), "rows": Figure(value=10, unit="1/s", more_is_better=True), "came": cpu(2)}
    found = {c.name: (c.share and round(c.share, 3), c.worse) for c in compared(old, new, 0.25)}
    assert found == {"cpu": (0.3, True), "share": (-0.375, True), "rows": (-0.9, False), "came": (None, False), "gone": (None, False)}
    assert not any(c.worse for c in compared(old, new, 0.5))
    assert not any(c.worse for c in compared(new, old, 0.25) if c.name == "cpu")  # better is not worse


def test_a_decoder_is_judged_by_the_median_of_its_passes_each_in_its_own_yardstick() -> None:
    bad = {"cut in half": 1.5, "last byte missing": 3.5}
    one = {"ns": [700, 900, 6000], "y_ns": [7000, 3000, 6000], "peak": 512 << 20, "first": {"seconds": 2.0}, "bad": bad}
    found = decoders.figures({FILES[0]: one})
    assert found["open_16: CPU"] == Figure(value=0.3, unit="Y", must=0.3, aim=0.15, ratio=True)
    assert found["open_16: peak memory"].value == 512
    assert missed(found) == ["open_16: a bad message is 3.5 × clean batch, must be at most 3"]


def test_the_files_have_the_limits_of_the_decoders_table() -> None:
    assert {f.name: (f.must, f.aim, f.go) for f in FILES} == {
        "open_16": (0.30, 0.15, 3.0),
        "open_64": (0.30, 0.15, 3.0),
        "craft_16": (0.09, 0.045, 0.91),
        "craft_64": (0.09, 0.045, 0.91),
        "canal-json_1": (0.19, 0.10, 1.96),
        "avro_1": (0.42, 0.10, 4.2),
        "simple-json_1": (0.20, 0.10, 1.02),
        "simple-avro_1": (0.20, 0.10, 1.10),
        "canal_16": (0.20, 0.08, None),
    }
    assert {f.protocol for f in FILES if f.spoil} == {f.protocol for f in FILES}


def test_decode_through_spark_is_set_against_the_writes_around_it() -> None:
    assert spark.share_of_writer([8, 12, 12, 10], [10, 20, 11]) == 1.0  # 1, 0.6 and 1: slow neighbours count, not the first write alone
    with pytest.raises(ValueError, match="2 writes around 2 decodes"):
        spark.share_of_writer([8, 12], [10, 20])


def test_a_worker_that_holds_too_much_is_missed() -> None:
    turn = {"seconds": 10.0, "worker": 1025 << 20}
    one = {"events": 1000, "write": [{"seconds": 7.0}, {"seconds": 7.0}], "decode": [turn]}
    assert missed(spark.figures({"open": one})) == ["open: Python worker is 1,025 MiB, must be at most 1,024"]


def test_landing_is_set_against_the_plain_loop_right_before_it_and_against_its_limits() -> None:
    turns = {"plain": [{"seconds": s} for s in (3, 9, 4)], "land": [{"seconds": s} for s in (2, 3, 4)]}  # 1.5, 3 and 1 times as fast
    memory = {"64": {"peak": 396 << 20}, "512": {"peak": 900 << 20}}
    details = {"formats": {"avro": {"bytes": 6e6} | turns}, "memory": memory, "tiny": {"seconds": 61}}
    found = landing.figures(details)
    assert found["avro: land"] == Figure(value=1.5, unit="× the plain loop", must=1.5, more_is_better=True, ratio=True)
    assert found["avro: messages"].value == 2.0
    assert missed(found) == [
        "512 MB in flight: peak memory is 900 MiB, must be at most 844",
        "10,000 objects is 61 s, must be at most 60",
    ]


def test_a_run_is_saved_with_its_machine_and_read_back(tmp_path: Path) -> None:
    path = save({"a": cpu(0.1)}, {"decoders": {"x": 1}}, tmp_path)
    found = load(path)
    assert (found.figures, found.details) == ({"a": cpu(0.1)}, {"decoders": {"x": 1}})
    assert {"processor", "cores", "load", "python", "commit", "numba"} <= found.machine.keys()


def test_the_newest_runs_are_those_with_the_latest_names(tmp_path: Path) -> None:
    for name in ("2026-11-03T000000.json", "2026-11-01T000000.json", "2026-11-02T000000.json", "newest.json"):
        (tmp_path / name).touch()
    assert [p.name for p in newest(2, tmp_path)] == ["2026-11-02T000000.json", "2026-11-03T000000.json"]


def run(folder: Path, day: int, figures: dict[str, Figure]) -> None:
    made = Results(made_at=f"2026-11-0{day}T00:00:00+00:00", machine={"cores": str(day)}, figures=figures)
    (folder / f"2026-11-0{day}T000000.json").write_text(made.model_dump_json())


def compare_newest(folder: Path, *arguments: str) -> tuple[int, str]:
    printed = StringIO()
    return compare.main(arguments, folder, Console(width=120, file=printed)), printed.getvalue()


def test_compare_takes_the_two_newest_runs_and_fails_for_what_got_worse(tmp_path: Path) -> None:
    run(tmp_path, 1, {"a": cpu(0.01)})
    assert compare_newest(tmp_path)[0] == 2
    run(tmp_path, 2, {"a": cpu(0.1), "b": cpu(0.2)})
    run(tmp_path, 3, {"a": cpu(0.12), "b": cpu(0.3)})
    code, text = compare_newest(tmp_path)
    assert code == 1
    assert "worse by more than 25%: b" in text
    assert "+20.0%" in text
    assert "+50.0%" in text
    assert "cores: 2 → 3" in text
    assert compare_newest(tmp_path, "--tolerance", "0.6")[0] == 0


def test_compare_takes_the_runs_that_it_is_given_in_their_order(tmp_path: Path) -> None:
    run(tmp_path, 1, {"a": cpu(0.2)})
    run(tmp_path, 2, {"a": cpu(0.1)})
    older, newer = (str(tmp_path / f"2026-11-0{day}T000000.json") for day in (1, 2))
    assert compare_newest(tmp_path, older, newer)[0] == 0
    assert compare_newest(tmp_path, newer, older)[0] == 1


def test_runs_without_a_common_figure_cannot_be_compared(tmp_path: Path) -> None:
    run(tmp_path, 1, {"a": cpu(0.2)})
    run(tmp_path, 2, {"b": cpu(0.1)})
    assert compare_newest(tmp_path)[0] == 2
