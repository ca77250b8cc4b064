"""Sessions of one application, one for each lake; where a session's application is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import gettempdir

import pytest

from tests.lake import lakes
from tidelake.config.policy import Policy
from tidelake.errors import ConfigError
from tidelake.spark import session
from tidelake.spark.application import HIDDEN, REDACTION, SECRETS
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session


@pytest.mark.usefixtures("spark_app")
def test_a_session_begins_beside_one_that_made_a_frame_of_rows(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    settings = lake_settings(lakes.feed(tmp_path))
    with spark_session(settings, "first") as first:
        assert first.createDataFrame([(1,)], "a int").count() == 1
        with spark_session(settings, "second") as second:
            assert second is not first
            assert second.createDataFrame([(1,), (2,)], "a int").count() == 2
            with spark_session(settings, "third") as third:
                assert third.createDataFrame([(1,), (2,), (3,)], "a int").count() == 3


@pytest.mark.parametrize(
    ("brief", "up", "remote"),
    [(True, False, None), (True, True, "sc://shared"), (False, False, "sc://shared"), (False, True, "sc://shared")],
)
def test_a_stage_with_little_work_starts_no_server_for_others(
    brief: bool, up: bool, remote: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, settings = tmp_path / "spark", lake_settings(lakes.feed(tmp_path, policy=Policy(mask_key="a key of more than 16 bytes")))

    @contextmanager
    def shared(folder: Path) -> Iterator[str]:
        folder.mkdir()
        yield "sc://shared"

    monkeypatch.setenv("TIDELAKE_SPARK_SERVER", str(server))
    monkeypatch.setattr(session, "runs", lambda folder: up)
    monkeypatch.setattr(session, "shared_server", shared)
    with session._remote(brief) as found, session._handed_over(settings, found) as place:
        assert found == remote  # and its workers find secrets there
        assert Path(place.removeprefix("file:")).parent == (server if remote else Path(gettempdir()).resolve()), (
            "where its workers find secrets"
        )


def test_a_server_that_is_named_takes_little_work_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDELAKE_SPARK_SERVER", raising=False)
    monkeypatch.setenv("TIDELAKE_SPARK_REMOTE", "sc://cluster")
    with session._remote(brief=True) as found:
        assert found == "sc://cluster"


class _Written:
    """An application that writes an event log, as far as the check of its secrets asks."""

    def __init__(self, redaction: str | None) -> None:
        self.conf = {"spark.eventLog.enabled": "true"} | ({REDACTION: redaction} if redaction else {})

    def sql(self, _: str) -> _Written:
        return self

    def collect(self) -> list[dict[str, str]]:
        """What it began with: all secrets, hidden by their names."""
        return [{"key": key} for key in SECRETS]


@pytest.mark.parametrize(("redaction", "refused"), [(HIDDEN, False), (None, True), ("(?i)password", True)])
def test_a_rest_catalog_s_credential_is_refused_where_spark_would_not_hide_it(tmp_path: Path, redaction: str | None, refused: bool) -> None:
    lake = {"uri": str(tmp_path / "lake"), "catalog": "https://rest", "rest": {"credential": "reader:harbour-pass"}}
    settings = lake_settings(lakes.feed(tmp_path, lake=lake))
    with pytest.raises(ConfigError, match=r"would write spark\.sql\.catalog\.lake\.credential") if refused else nullcontext():
        session._refuse_to_be_written_down(_Written(redaction), settings)  # type: ignore[arg-type]
