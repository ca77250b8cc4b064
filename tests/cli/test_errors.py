"""What every command does with wrong use and with what goes wrong: one line on stderr, an exit code, no traceback, no secret."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tests.cli.calls import call
from tests.cli.lakes import failing
from tidelake import errors

JOBS = CHECKOUT / "jobs"
STAGES = ("land", "decode", "order", "validate", "compact", "run")
HOUR = ("--hour", "2026-01-05T10")
OF_A_FEED: dict[str, tuple[str, ...]] = {stage: (stage, *HOUR) for stage in STAGES} | {
    "status": ("status",),
    "report": ("report",),
    "asof": ("asof", "--table", "shop.orders"),
    "changelog": ("changelog", "--table", "shop.orders"),
    "diff": ("diff", "--ts", "1", "--ts", "2"),
    "verify": ("verify",),
    "quarantine list": ("quarantine", "list"),
    "quarantine show": ("quarantine", "show", "shop[0]@1"),
    "quarantine replay": ("quarantine", "replay"),
    "quarantine accept": ("quarantine", "accept", "--all"),
}
EVERY = [*OF_A_FEED, "check", "inspect", "demo", "quarantine"]
SECRET = "hunter2"


@pytest.fixture
def begun(schemas: Path) -> Path:
    """The same with a lake that another feed has begun."""
    (schemas.parent / "lake" / "landed" / "other").mkdir(parents=True)
    (schemas.parent / "lake" / "landed" / "other" / "object").touch()
    return schemas


# help


@pytest.mark.parametrize("command", ["", *EVERY])
def test_every_command_s_help_says_what_it_does(command: str) -> None:
    done = call(*command.split(), "--help")
    assert call(*command.split(), "-h") == done
    assert (done.code, done.err) == (0, "")
    assert f"Usage: tidelake {command}".rstrip() in done.out
    said = [line.strip() for line in done.out.splitlines() if line.strip()]
    assert len(said[1]) > 30
    assert not said[1].startswith(("╭", "["))


def test_the_first_help_names_every_command_in_groups() -> None:
    said = call("--help").out
    assert all(command.partition(" ")[0] in said for command in EVERY)
    assert all(group in said for group in ("Feeds", "Stages", "Tables", "Messages"))


@pytest.mark.parametrize("command", [[], ["quarantine"]])
def test_no_command_is_wrong_use_that_shows_the_help(command: list[str]) -> None:
    done = call(*command)
    assert done.code == 2
    assert "Usage: tidelake" in done.out + done.err


# wrong use


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chekc"], "No such command 'chekc'"),
        (["check", "--jsn"], "No such option: --jsn"),
        (["land", "--feed", "shop"], "Missing option '--hour'"),
        (["land", *HOUR], "Missing option '--feed'"),
        (["run", "--feed", "shop", *HOUR, "--hours", "0"], "'--hours'"),
        (["run", "--feed", "shop", *HOUR, "--hours", "x"], "'--hours'"),
        (["asof", "--feed", "shop", "--table", "a.b", "--format", "csv"], "'csv' is not one of 'jsonl', 'parquet', 'table'"),
        (["asof", "--feed", "shop", "--table", "a.b", "--ts", "now"], "'--ts'"),
        (["inspect", "--protocol", "open"], "Missing argument 'FILE.jsonl'"),
        (["quarantine", "lst"], "No such command 'lst'"),
    ],
)
def test_wrong_use_is_told_in_one_line_with_where_to_look(arguments: list[str], said: str) -> None:
    done = call(*arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.startswith("error: USAGE: ")
    assert "--help" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("command", OF_A_FEED)
def test_an_unknown_feed_is_told_with_those_there_are(schemas: Path, command: str) -> None:
    done = call(*OF_A_FEED[command], "--feed", "shpo")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: CONFIG: no feed 'shpo' in schemas: schemas/shpo/feed.toml does not exist; existing feeds: shop, shop-two\n"


@pytest.mark.parametrize("command", OF_A_FEED)
def test_the_folder_of_feeds_comes_from_the_option_or_the_environment(schemas: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    done = call(*OF_A_FEED[command], "--feed", "x", "--schemas", "elsewhere")
    assert (done.code, "no feed 'x' in elsewhere: " in done.err) == (2, True)
    monkeypatch.setenv("TIDELAKE_SCHEMAS", "of-the-environment")
    assert "no feed 'x' in of-the-environment: " in call(*OF_A_FEED[command], "--feed", "x").err
    assert "no feed 'x' in elsewhere: " in call(*OF_A_FEED[command], "--feed", "x", "--schemas", "elsewhere").err


@pytest.mark.parametrize("command", OF_A_FEED)
def test_an_unset_variable_is_told_with_the_key_that_names_it(schemas: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.delenv("TIDELAKE_ARCHIVE")
    done = call(*OF_A_FEED[command], "--feed", "shop")
    assert (done.code, done.out) == (2, "")
    assert "schemas/shop/feed.toml: source.uri: the environment has no TIDELAKE_ARCHIVE; set TIDELAKE_ARCHIVE, or" in done.err


@pytest.mark.parametrize(
    ("stage", "hour"),
    [
        *((stage, "2026-01-05") for stage in STAGES),
        *((f"quarantine {verb}", "2026-01-05") for verb in ("list", "replay", "accept --all")),
        *(("land", hour) for hour in ("2026-01-05T24", "2026-13-05T10", "2026-01-05 10", "10", "", "2026-01-05T10:00")),
    ],
)
def test_a_malformed_hour_is_told_with_how_one_looks(begun: Path, stage: str, hour: str) -> None:
    done = call(*stage.split(), "--feed", "shop", "--hour", hour)
    assert (done.code, done.out) == (2, "")
    assert f"not an hour: {hour!r}" in done.err
    assert "write it like 2026-01-05T10 (UTC)" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["asof", "--table", "shop.orders", "--at", "yesterday"], "not an ISO 8601 time: 'yesterday'; write it like 2026-01-05T12:00:00Z"),
        (["asof", "--table", "shop.orders", "--at", "2026-01-05T12:00:00"], "has no time zone; append Z for UTC"),
        (["asof", "--table", "shop.orders", "--ts", "1", "--at", "2026-01-05T12:00:00Z"], "--ts and --at say the same; give one of them"),
        (["quarantine", "show", "shop"], "not a message: 'shop'; write it like shop.open[2]@1017"),
        (["quarantine", "accept"], "no message given; give a message that `tidelake quarantine list --feed shop` prints, or --all"),
        (["quarantine", "accept", "shop[0]@1", "--all"], "no message given"),
        *(
            (
                ["quarantine", verb, "--hour", "2026-01-05T10"],
                "NOT_DECODED: hour 2026-01-05T10 of feed shop is not decoded: its messages are unknown",
            )
            for verb in ("list", "replay")
        ),
        (["report"], "feed shop has no landed hour to report on; run `tidelake run --feed shop --hour …` first"),
    ],
)
def test_other_wrong_arguments_are_told_with_what_to_write(begun: Path, arguments: list[str], said: str) -> None:
    done = call(*arguments, "--feed", "shop")
    assert (done.code, done.out) == (2, "")
    assert said in done.err


# what goes wrong


@pytest.mark.parametrize("command", ["land", "status", "asof", "quarantine list"])
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (errors.TidelakeError("why"), 1, "FAILED: why"),
        (errors.ConfigError("why", remedy="do that"), 2, "CONFIG: why; do that"),
        (errors.ContractError("why"), 2, "CONTRACT: why"),
        (errors.OrderError("why", code="GAP"), 3, "GAP: why"),
        (errors.QualityError("why"), 3, "QUALITY: why"),
        (errors.LeaseError("why"), 1, "LEASE: why"),
        (errors.StorageError("why", at=errors.Coordinates("t", 1, 2)), 1, "STORAGE t[1]@2: why"),
        (ValueError("first\nsecond"), 1, "unexpected ValueError: first; --debug shows where"),
        (AssertionError(), 1, "unexpected AssertionError: ; --debug shows where"),
    ],
)
def test_an_error_is_one_line_on_stderr_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, command: str, error: Exception, code: int, said: str
) -> None:
    failing(monkeypatch, error)
    done = call(*OF_A_FEED[command], "--feed", "shop")
    assert (done.code, done.out, done.err) == (code, "", f"error: {said}\n")


@pytest.mark.parametrize("command", [c for c in EVERY if c not in ("asof", "changelog", "demo", "quarantine", "inspect")])
def test_a_program_that_asked_for_json_gets_the_error_as_an_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    given = [*OF_A_FEED[command], "--feed", "shop"] if command in OF_A_FEED else [command]
    done = call(*given, "--json")
    said = json.loads(done.out)["error"]
    assert (said["code"], said["exit_code"], said["coordinates"]) == ("CONFIG", 2, None)
    assert done.code == 2
    assert done.err == f"error: CONFIG: {said['message']}" + (f"; {said['remedy']}\n" if said["remedy"] else "\n")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            errors.OrderError("why", code="GAP", at=errors.Coordinates("t", 1, 2), remedy="do that"),
            {
                "code": "GAP",
                "message": "why",
                "remedy": "do that",
                "coordinates": {"topic": "t", "partition": 1, "offset": 2},
                "exit_code": 3,
            },
        ),
        (
            ValueError("first\nsecond"),
            {
                "code": "UNEXPECTED",
                "message": "unexpected ValueError: first",
                "remedy": "--debug shows where",
                "coordinates": None,
                "exit_code": 1,
            },
        ),
    ],
)
def test_the_object_says_what_the_line_says(monkeypatch: pytest.MonkeyPatch, error: Exception, said: dict[str, object]) -> None:
    failing(monkeypatch, error)
    done = call("status", "--feed", "shop", "--json")
    assert (done.code, json.loads(done.out)) == (said["exit_code"], {"error": said})
    assert done.err.startswith("error: ")
    failing(monkeypatch, KeyboardInterrupt())
    assert json.loads(call("status", "--feed", "shop", "--json").out)["error"]["code"] == "INTERRUPTED"


def test_wrong_use_is_an_object_too() -> None:
    done = call("land", "--feed", "shop", "--json")
    assert (done.code, json.loads(done.out)["error"]["code"]) == (2, "USAGE")


@pytest.mark.parametrize("error", [errors.OrderError("[bold]why[/bold] [1]"), RuntimeError("[bold]why[/bold] [1]")])
def test_a_traceback_is_shown_with_debug_only_and_before_the_error(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    failing(monkeypatch, error)
    without, debugged = (call("status", "--feed", "shop", *more) for more in ([], ["--debug"]))
    assert "Traceback" not in without.err
    assert debugged.err.startswith("Traceback (most recent call last):\n")
    assert debugged.err.splitlines()[-1] == without.err.splitlines()[-1]
    assert "[bold]why[/bold] [1]" in without.err
    assert debugged.code == without.code


def test_an_interrupted_command_says_that_it_may_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    done = call("status", "--feed", "shop")
    assert (done.code, done.out) == (130, "")
    assert "run the same command again to continue" in done.err


def test_a_long_error_is_not_wrapped_so_that_programs_find_it_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, errors.ConfigError("x " * 500))
    assert len(call("status", "--feed", "shop").err.splitlines()) == 1


def test_a_lake_that_cannot_be_reached_is_told_without_what_variables_hold(schemas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELAKE_LAKE", f"ftp://user:{SECRET}@host/lake")
    done = call("status", "--feed", "shop")
    assert done.code in (1, 2)
    assert done.err.startswith("error: CONFIG: ")
    assert SECRET not in done.err


def test_an_hour_of_which_nothing_was_archived_is_blocked_and_named(schemas: Path) -> None:
    done = call("land", "--feed", "shop", *HOUR)
    assert done.code == 3
    assert "2026-01-05T10" in done.err
    assert "Traceback" not in done.err


def test_a_status_of_a_feed_that_is_not_begun_in_a_lake_is_no_error(begun: Path) -> None:
    done = call("status", "--feed", "shop", "--json")
    assert (done.code, done.err) == (0, "")
    done = call("report", "--feed", "shop")
    assert (done.code, "feed shop has no landed hour to report on; run `tidelake run --feed shop --hour …` first" in done.err) == (2, True)


MORE = {
    "late": ("late",),
    "ddl": ("ddl",),
    "rollback": ("rollback", "--to", "1"),
    "redo": ("redo", "--from", "2026-01-05T10"),
    "maintain": ("maintain",),
    "abandon": ("abandon",),
    "unlock": ("unlock",),
}


@pytest.mark.parametrize("command", ["status", "report", "asof", "changelog", "diff", "quarantine list", *MORE])
def test_a_lake_that_is_not_there_is_told_by_every_command_that_does_not_begin_one(schemas: Path, command: str) -> None:
    done = call(*(OF_A_FEED | MORE)[command], "--feed", "shop")
    assert (done.code, done.out) == (2, "")
    assert f"NO_LAKE: there is no lake at {schemas.parent}/lake; check lake.uri" in done.err
    assert sorted(p.name for p in schemas.parent.iterdir()) == ["archive", "schemas"]


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "messages.jsonl").write_text('{"value": null}\n' * 1000)
    command = f"{sys.executable} -m tidelake inspect --protocol open {tmp_path}/messages.jsonl; echo $? >&2"
    done = subprocess.run(["sh", "-c", f"({command}) | head -n 1"], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.count("\n") == 1
    assert done.stderr == "0\n"


# mains


@pytest.mark.parametrize("stage", [*STAGES[:5], "maintain"])
def test_a_stage_s_main_is_thin_and_is_its_command(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    main = JOBS / f"{stage}.py"
    given: list[list[str]] = []
    monkeypatch.setattr("tidelake.cli.run", lambda arguments: given.append(arguments) or 3)
    monkeypatch.setattr(sys, "argv", [str(main), "--feed", "shop"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(main), run_name="__main__")
    assert (ended.value.code, given) == (3, [[stage, "--feed", "shop"]])
    runpy.run_path(str(main), run_name="imported")
    assert len(given) == 1
    assert len(main.read_text().splitlines()) <= 40


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["--feed", "shop"], 2), (["--feed", "x", *HOUR], 2)])
def test_a_main_s_exit_code_is_the_command_s(schemas: Path, arguments: list[str], code: int) -> None:
    command = [sys.executable, str(JOBS / "land.py"), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert ("Usage: tidelake land" in done.stdout) == (code == 0)


def test_there_is_a_main_for_every_stage_and_maintain_and_nothing_else() -> None:
    assert sorted(p.stem for p in JOBS.glob("*.py")) == sorted([*STAGES[:5], "maintain"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--format", "table", "-o", "x.txt"),
            "--output: --format table prints for people and writes no file; give --format jsonl or parquet",
        ),
        (("-o", "nowhere/x.jsonl"), "--output: there is no folder nowhere; create it, or give a file in an existing folder"),
    ],
)
def test_an_output_that_would_not_be_written_is_refused(arguments: tuple[str, ...], said: str) -> None:
    done = call("asof", "--feed", "shop", "--table", "d.t", *arguments)
    assert (done.code, done.out, done.err) == (2, "", f"error: CONFIG: {said}\n")
