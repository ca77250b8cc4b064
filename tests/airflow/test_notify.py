"""The DAG `tidelake_notify`: what people are told of feeds, with real notifiers, a real mail server and lakes without Spark."""

from __future__ import annotations

import email.policy
import json
import socket
import sys
from collections.abc import Iterator
from email import message_from_bytes
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from tests.lake import cheap
from tests.land.archive import messages, put
from tidelake.config.feed import Feed, load_feed
from tidelake.lake.cut import Reason
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake

pytestmark = pytest.mark.usefixtures("warm_children")
MAIL = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
FILES = "tests.airflow.notifiers.FileNotifier"
TEN, BEFORE = "2026-01-05T10", 105  # the archive's first hour, and the hour before it in hours since cheap.START
FEED = """
protocol = "craft"
topics = ["t"]
partitions = 1
[source]
uri = "{root}/archive"
layout = "aiven-jsonl"
closed_by = "quiet"
[lake]
uri = "{root}/lake"
[policy]
decide_hours = 0
"""


class Team:
    """A feed `shop`, the notifiers of its team, and the folder where their messages end up."""

    def __init__(self, root: Path, bag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.folder, self._bag = root, root / "told", bag
        self.folder.mkdir()
        monkeypatch.setenv("TIDELAKE_SCHEMAS", str(root / "schemas"))
        self.has(self.files())

    def files(self, more: str = "", **arguments: str) -> str:
        """An entry that writes messages into the folder."""
        given = ", ".join(f'{name} = "{value}"' for name, value in ({"folder": str(self.folder)} | arguments).items())
        return f'class = "{FILES}"\nwith = {{ {given} }}\n{more}'

    def has(self, *entries: str, feed: str = "shop") -> None:
        """Give the feed these notifiers."""
        (self.root / "schemas" / feed).mkdir(parents=True, exist_ok=True)
        text = FEED.format(root=self.root) + "".join(f"[[notify]]\n{entry}\n" for entry in entries)
        (self.root / "schemas" / feed / "feed.toml").write_text(text, encoding="utf-8")

    @property
    def feed(self) -> Feed:
        return load_feed(self.root / "schemas", "shop")

    def dags(self) -> Any:
        """What Airflow reads."""
        return type(self._bag)(self._bag.dag_folder)

    def run(self, dag_id: str, **conf: Any) -> str:
        """Run a DAG and return the state of its run."""
        return str(self.dags().dags[dag_id].test(logical_date=None, run_conf=conf).state)

    def hour(self, hour: str) -> str:
        """Run an hour of the feed."""
        return self.run("tidelake_shop", hour=hour, until=None, redo=False, wait=False)

    def told(self, state: str = "success") -> list[str]:
        """Run tidelake_notify; the first line of each message."""
        assert self.run("tidelake_notify") == state
        return [text.splitlines()[0] for text in self.read()]

    def read(self) -> list[str]:
        """Take the messages out of the folder."""
        files = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        texts = [file.read_text(encoding="utf-8") for file in files]
        for file in files:
            file.unlink()
        return texts

    def publish(self, hours: int, **more: Any) -> None:
        """Publish a cut of this hour, as a run would, without Spark."""
        with Lake.of(self.feed) as lake:
            cheap.publish(lake, newest_cut(lake.catalog, lake.store, "shop"), hours, **more)


@pytest.fixture
def team(bag: Any, short_pauses: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    return Team(tmp_path, bag, monkeypatch)


class Mailbox:
    """Takes mails as a server does."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        """Keep a mail."""
        self.mails.append(message_from_bytes(envelope.content, policy=email.policy.default))  # type: ignore[arg-type]
        return "250 kept"


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    """A mail server on loopback, and Airflow's connection to it."""
    box = Mailbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Controller(box, hostname="127.0.0.1", port=port)
    server.start()
    options = "disable_ssl=true&disable_tls=true&from_email=airflow%40example.com"
    monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", f"smtp://127.0.0.1:{port}/?{options}")
    yield box
    server.stop()


def test_a_blocked_hour_is_told_once_over_retries_and_following_hours_and_its_recovery_once(team: Team) -> None:
    team.publish(BEFORE)
    for hours, first in ((0, 0), (1, 10)):  # offsets are missing in both hours
        put(team.feed, 0, messages(first, first + 4), hours=hours, topic="t")
        put(team.feed, 0, messages(first + 8, first + 9), hours=hours, topic="t")
    assert team.told() == []
    heard = [*(team.hour(TEN), *team.told()), *(team.hour(TEN), *team.told()), *(team.hour("2026-01-05T11"), *team.told())]
    assert heard == ["failed", f"Feed shop: hour {TEN} is blocked (GAP).", "failed", "failed"]
    team.publish(BEFORE + 1)
    assert team.told() == [f"Feed shop: hour {TEN} is no longer blocked by GAP."]
    assert team.told() == []


def test_the_message_says_why_what_to_do_and_where_the_report_is(team: Team) -> None:
    put(team.feed, 0, messages(0, 4), topic="t")
    put(team.feed, 0, messages(8, 9), topic="t")
    team.hour(TEN)
    team.run("tidelake_notify")
    [text] = team.read()
    _, _, why, todo, published, report = text.splitlines()
    assert why == f"Why: GAP: t[0]@5: hour {TEN}: offsets 5–7 are missing (3 messages)"
    assert todo.startswith("What to do: restore the missing file and land the hour again, or set [policy] on_gap")
    assert published == "Published: nothing yet"
    assert report == f"Quality report: http://airflow.example:8080/tidelake/quality/shop/{TEN}"


def test_a_mail_has_subject_and_text_without_further_settings(team: Team, mailbox: Mailbox) -> None:
    team.has(f'class = "{MAIL}"\nwith = {{ to = "data@example.com" }}')
    team.publish(BEFORE, lacks=[Reason(code="LATE_ROWS", detail="rows arrived <late>", cut=1, hour="2026-01-05T09")])
    assert team.run("tidelake_notify") == team.run("tidelake_notify") == "success"
    [mail] = mailbox.mails
    assert (mail["To"], mail["From"]) == ("data@example.com", "airflow@example.com")
    assert mail["Subject"] == "shop: hour 2026-01-05T09 is published incomplete (LATE_ROWS)"
    body = mail.get_body(("html",))
    assert body is not None
    assert "<p><b>Why</b>: LATE_ROWS: rows arrived &lt;late&gt;</p>" in body.get_content()
    assert '<a href="http://airflow.example:8080/tidelake/quality/shop/2026-01-05T09">' in body.get_content()


def test_a_notifier_that_fails_loses_nothing_and_keeps_no_other_from_its_messages(
    team: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    down = tmp_path / "down"
    team.has(f'class = "{FILES}"\nwith = {{ folder = "{down}" }}', team.files())
    put(team.feed, 0, messages(0, 4), topic="t")
    put(team.feed, 0, messages(8, 9), topic="t")
    assert team.hour(TEN) == "failed"
    assert team.told(state="failed") == [f"Feed shop: hour {TEN} is blocked (GAP)."]
    said = f"shop: {FILES} did not deliver 'shop: hour {TEN} is blocked (GAP)': [Errno 2] No such file or directory"
    assert said in capsys.readouterr().out
    team.publish(BEFORE + 1)
    assert team.told(state="failed") == [f"Feed shop: hour {TEN} is no longer blocked by GAP."]
    down.mkdir()
    assert team.told() == []
    first, second = (file.read_text().splitlines()[0] for file in sorted(down.iterdir()))
    assert (first, second) == (f"Feed shop: hour {TEN} is blocked (GAP).", f"Feed shop: hour {TEN} is no longer blocked by GAP.")


def test_arguments_may_hold_templates_and_variables_of_the_connection(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "{{ notice.event }} {{ notice.code }} {{ notice.hour }} of {{ notice.feed }}, by {{ dag.dag_id }}: ${PLACE}"
    team.has(team.files(mention="${WHO} ", message=said))
    team.publish(BEFORE, lacks=[Reason(code="LATE_ROWS", detail="late", cut=1, hour="2026-01-05T09")])
    monkeypatch.setenv("PLACE", "here")
    assert team.told(state="failed") == []  # nobody says who WHO is
    monkeypatch.setenv("AIRFLOW_CONN_TIDELAKE", '{"conn_type": "generic", "extra": {"WHO": "@data"}}')
    assert team.told() == ["@data incomplete LATE_ROWS 2026-01-05T09 of shop, by tidelake_notify: here"]


def test_the_children_of_stages_get_no_variable_of_a_notifier(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    team.dags()
    team.has(team.files(mention="${WHO}"))
    monkeypatch.setenv("AIRFLOW_CONN_TIDELAKE", '{"conn_type": "generic", "extra": {"WHO": "@data"}}')
    connections = sys.modules["tidelake.airflow.connections"]
    feed = load_feed(team.root / "schemas", "shop", expand=False)
    assert (connections.given(feed), connections.given_to_notifiers(feed)) == ({}, {"WHO": "@data"})


def test_lag_is_told_without_a_run_of_the_feed(team: Team) -> None:
    team.has(team.files('on = ["lag", "recovered"]\nlag_minutes = 180'))
    team.publish(BEFORE)
    assert team.told() == ["Feed shop: the published data is late."]
    assert team.told() == []


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('class = "teams.Chat"', "[[notify]] teams.Chat: the class cannot be imported: No module named 'teams'; write its import path as"),
        ('class = "airflow.sdk.DAG"', "[[notify]] airflow.sdk.DAG is not a notifier; write a subclass of airflow.sdk.BaseNotifier as"),
        (f'class = "{MAIL}"\nwith = {{ too = "me" }}', "the class refuses the arguments under `with`: "),
        (f'class = "{FILES}"', "missing 1 required keyword-only argument: 'folder'; it takes folder, message, mention; see its provider's"),
    ],
)
def test_a_wrong_class_or_argument_is_an_import_error_and_stops_neither_stages_nor_other_notifiers(
    team: Team, entry: str, says: str
) -> None:
    team.has(entry, team.files())
    read = team.dags()
    assert sorted(read.dag_ids) == ["tidelake_notify", "tidelake_shop", "tidelake_shop.maintenance"]
    [(file, error)] = read.import_errors.items()
    assert file.endswith("tidelake_broken_feeds.py")
    assert f"{team.root / 'schemas' / 'shop' / 'feed.toml'}: [[notify]]" in error
    assert says in error
    team.publish(BEFORE, lacks=[Reason(code="LATE_ROWS", detail="late", cut=1, hour="2026-01-05T09")])
    assert team.told(state="failed") == ["Feed shop: hour 2026-01-05T09 is published incomplete (LATE_ROWS)."]


def test_a_feed_whose_lake_cannot_be_read_keeps_no_other_from_being_told(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    team.publish(BEFORE, lacks=[Reason(code="LATE_ROWS", detail="late", cut=1, hour="2026-01-05T09")])
    team.has(team.files(), feed="broken")
    broken = team.root / "schemas" / "broken" / "feed.toml"
    broken.write_text(broken.read_text().replace(f"{team.root}/lake", 's3://lake"\ncatalog = "jdbc:oracle:x'))
    assert team.told(state="failed") == ["Feed shop: hour 2026-01-05T09 is published incomplete (LATE_ROWS)."]
    assert "broken: CONFIG: " in capsys.readouterr().out


def test_a_test_message_goes_to_everyone_and_changes_nothing(team: Team) -> None:
    team.has(team.files(), team.files(mention="@all "))
    team.publish(BEFORE, lacks=[Reason(code="LATE_ROWS", detail="late", cut=1, hour="2026-01-05T09")])
    assert team.run("tidelake_notify", test=True) == "success"
    assert [text.splitlines()[0] for text in team.read()] == ["Feed shop: this is a test.", "@all Feed shop: this is a test."]
    assert not (team.root / "lake" / "notices").exists()


def test_without_notifiers_there_is_no_such_dag(team: Team) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    team.has()
    assert sorted(team.dags().dag_ids) == ["tidelake_shop", "tidelake_shop.maintenance"]
    team.has(team.files())
    dag = team.dags().dags["tidelake_notify"]
    assert (dag.max_active_runs, dag.catchup, dag.is_paused_upon_creation, dag.timetable.expression) == (1, False, False, "*/5 * * * *")
    assert [(t.task_id, t.feeds, t.retries, t.owner) for t in dag.tasks] == [("notify", ["shop"], 0, "tidelake")]
    again = DagSerialization.deserialize_dag(json.loads(json.dumps(DagSerialization.serialize_dag(dag))))
    assert [(t.task_id, t.pool, t.priority_weight) for t in again.tasks] == [("notify", "default_pool", 10)]


def test_feeds_of_two_folders_are_notified_by_two_dags(team: Team) -> None:
    from tidelake.airflow import tidelake_dags

    dags = [*tidelake_dags(team.root / "schemas"), *tidelake_dags(team.root / "schemas", notify="team_notify")]
    assert [d.dag_id for d in dags if d.dag_id.endswith("notify")] == ["tidelake_notify", "team_notify"]
