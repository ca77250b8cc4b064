"""Words of a notice: subject, text and HTML. They say feed, hour, what, why, what to do, what readers see, and where the report is."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import escape

from tidelake.io.printable import printable
from tidelake.io.texts import clipped, moment, prose
from tidelake.notices.cause import Cause, Notice, Standing

_BEGAN = {
    "blocked": "hour {hour} is blocked ({code})",
    "incomplete": "hour {hour} is published incomplete ({code})",
    "warning": "hour {hour} is published with a warning ({code})",
    "lag": "the published data is late",
}
_ENDED = {
    "blocked": "hour {hour} is no longer blocked by {code}",
    "incomplete": "the newest cut no longer lacks what hour {hour} lacked ({code})",
    "warning": "the warning of hour {hour} ended ({code})",
    "lag": "the published data is no longer late",
}
_TEXT = 1_000  # characters of an error in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A notice in words, for templates of a notifier's arguments: `{{ notice.subject }}`, `{{ notice.text }}`, `{{ notice.html }}` and the
    members that they are made of. why: the code and the first line of the error; todo: empty if a cause ended.
    """

    event: str
    feed: str
    hour: str
    code: str
    what: str
    why: str
    todo: str
    published: str
    report: str

    @property
    def subject(self) -> str:
        """One line: `shop: hour 2026-01-05T10 is blocked (GAP)`."""
        return f"{self.feed}: {self.what}"

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Label and text of each line between the subject and the link to the report."""
        every = [("Why" if self.todo else "It was", self.why), ("What to do", self.todo), ("Published", self.published)]
        return [(label, text) for label, text in every if text]

    @property
    def text(self) -> str:
        """The message as plain text."""
        link = [f"Quality report: {self.report}"] if self.report else []
        return "\n".join([f"Feed {self.subject}.", "", *(f"{label}: {text}" for label, text in self.lines), *link])

    @property
    def html(self) -> str:
        """The message as HTML."""
        link = f'<p><a href="{escape(self.report)}">Quality report</a></p>' if self.report else ""
        lines = "".join(f"<p><b>{label}</b>: {prose(text)}</p>" for label, text in self.lines)
        return f"<p>Feed <b>{escape(self.feed)}</b>: {escape(self.what)}.</p>{lines}{link}"


def words(notice: Notice, feed: str, pages: str) -> Words:
    """Return a notice in words. pages: URL below which the quality reports of the feed's hours are, "" if unknown."""
    cause, ended = notice.cause, notice.event == "recovered"
    what = (_ENDED if ended else _BEGAN)[cause.event].format(hour=cause.hour, code=cause.code)
    return Words(
        event=notice.event,
        feed=feed,
        hour=cause.hour,
        code=cause.code,
        what=what,
        why=_line(f"{cause.code}: {cause.why}"),
        todo="" if ended else _line(cause.todo),
        published=_published(notice.standing, cause, ended),
        report=f"{pages}/{cause.hour}" if pages else "",
    )


def test_words(feed: str) -> Words:
    """Return a message that tries a notifier."""
    return Words(
        event="test",
        feed=feed,
        hour="",
        code="TEST",
        what="this is a test",
        why="TEST: someone triggered the DAG tidelake_notify with `test`",
        todo="nothing: the notifier works",
        published="",
        report="",
    )


def _published(standing: Standing, cause: Cause, ended: bool) -> str:
    """Return what readers see, and what blocks the feed if the notice does not say so."""
    seen = f"cut {standing.cut}, hour {standing.hour}, {moment(standing.resolved_ts)}" if standing.cut else "nothing yet"
    held = f"; hour {standing.blocked} is blocked" if standing.blocked and (ended or cause.event != "blocked") else ""
    return seen + held


def _line(text: str) -> str:
    """Return the first line of a text from outside, without characters that do not print."""
    return clipped(printable(text.strip().partition("\n")[0]), _TEXT)
