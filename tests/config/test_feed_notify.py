"""[[notify]]: who hears of what."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.feed_texts import ENVIRONMENT, PLAIN, loaded, refused
from tidelake.config.feed import unset_variables

MAIL = """
[[notify]]
class = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
on = ["blocked", "lag"]
lag_minutes = 180
with = { to = "${PEOPLE}", cc = ["${BOSS}"] }
"""
SLACK = '[[notify]]\nclass = "teams.Chat"\n'


def test_a_feed_may_have_several_notifiers(tmp_path: Path) -> None:
    mail, slack = loaded(tmp_path, PLAIN + MAIL + SLACK).notify
    assert (mail.kind, mail.on, mail.lag_minutes) == (
        "airflow.providers.smtp.notifications.smtp.SmtpNotifier",
        ("blocked", "lag"),
        180,
    )
    assert (slack.on, slack.lag_minutes, slack.arguments) == (("blocked", "incomplete", "recovered"), None, {})


def test_the_stages_need_none_of_the_variables_of_a_notifier(tmp_path: Path) -> None:
    feed = loaded(tmp_path, PLAIN + MAIL)
    assert feed.notify[0].arguments == {"to": "${PEOPLE}", "cc": ["${BOSS}"]}
    assert unset_variables(feed, ENVIRONMENT) == ["BOSS", "PEOPLE"]  # for `check`, which says where they are needed


def test_the_identity_of_a_notifier_is_its_class_and_what_is_written_under_with(tmp_path: Path) -> None:
    [mail], [other] = (loaded(tmp_path, PLAIN + text).notify for text in (MAIL, MAIL.replace("180", "300").replace('"blocked", ', "")))
    [changed] = loaded(tmp_path, PLAIN + MAIL.replace("BOSS", "BOSSES")).notify
    assert mail.key == other.key != changed.key
    assert "PEOPLE" not in mail.key


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('class = "Chat"', "notify.0.class: the import path of a class, like"),
        ("", "notify.0.class: missing"),
        ('class = "a.B"\nto = "me"', "notify.0.to: unknown key; allowed: class, on, lag_minutes, with"),
        (
            'class = "a.B"\non = ["blokked"]',
            "notify.0.on.0: Input should be 'blocked', 'incomplete', 'warning', 'lag' or 'recovered' (found",
        ),
        ('class = "a.B"\non = ["recovered"]', 'notify.0.on: different events, such as ["blocked", "incomplete", "recovered"], and not'),
        ('class = "a.B"\non = ["lag"]', 'notify.0: `on = ["lag"]` needs `lag_minutes`, and `lag_minutes` needs "lag" in `on`'),
        ('class = "a.B"\nlag_minutes = 90', 'notify.0: `on = ["lag"]` needs `lag_minutes`'),
        ('class = "a.B"\non = ["lag"]\nlag_minutes = 60', "notify.0.lag_minutes: Input should be greater than or equal to 61 (found 60)"),
        (f'class = "teams.Chat"\n{SLACK}', "notify: two entries have the class teams.Chat and the same `with`: write one, with the events"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    assert refused(tmp_path, f"{PLAIN}[[notify]]\n{text}\n").startswith(says)


def test_one_bracket_is_said(tmp_path: Path) -> None:
    assert refused(tmp_path, f'{PLAIN}[notify]\nclass = "a.B"\n') == "notify: each notifier begins with [[notify]], in two brackets"
