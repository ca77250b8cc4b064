"""Answers of the source: from a connection, or from files that its client wrote (`mysql -N -B`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tidelake.errors import ConfigError
from tidelake.io.mysql import MysqlReader
from tidelake.query.verify.cell_texts import NULL, SourceCell
from tidelake.query.verify.questions import DONE, Question, session

_ID = re.compile(r"q[0-9a-f]{15}")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "0": "\0", "r": "\r"}
UpstreamAnswer = list[tuple[str, ...]]


class UpstreamDatabase(Protocol):
    """A source of answers."""

    def ask(self, question: Question) -> UpstreamAnswer | None:
        """Return the rows of an answer without the id; None if it is not known yet."""


@dataclass(slots=True)
class Connected:
    """A server that answers at once."""

    reader: MysqlReader

    def ask(self, question: Question) -> UpstreamAnswer | None:
        """Query the server. Raises StorageError."""
        return [tuple(NULL if v is None else v for v in row[1:]) for row in self.reader.query(question.sql)]


@dataclass(slots=True)
class Recorded:
    """Answers from files. Questions without an answer are collected in `open`, for a script."""

    answers: dict[str, UpstreamAnswer] = field(default_factory=dict)
    open: dict[str, Question] = field(default_factory=dict)
    asked: int = 0

    def ask(self, question: Question) -> UpstreamAnswer | None:
        """Return the recorded answer; None if there is none, and then remember the question."""
        self.asked += 1
        found = self.answers.get(question.id)
        if found is None:
            self.open[question.id] = question
        return found


def read_answers(paths: Iterable[Path]) -> Recorded:
    """Return the complete answers in files. Raises ConfigError for a file without any."""
    found: dict[str, UpstreamAnswer] = {}
    for path in paths:
        here = _answers(path)
        if not here:
            raise ConfigError(
                f"{path}: not an answer to the SQL of `tidelake verify`", remedy="run the SQL with `mysql -N -B < SQL > FILE`"
            )
        found |= here
    return Recorded(found)


def script(source: SourceCell, ts: int, questions: Sequence[Question]) -> str:
    """Return the SQL script for the source's client. It only reads."""
    how = "-- Reads only. Run it with: mysql --default-character-set=utf8mb4 -N -B < this file > answers.tsv"
    return "\n".join([how, *(f"{s};" for s in session(source, ts)), *(q.script for q in questions), ""])


def _answers(path: Path) -> dict[str, UpstreamAnswer]:
    begun: dict[str, UpstreamAnswer] = {}
    whole: dict[str, UpstreamAnswer] = {}
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                first, *cells = line.rstrip("\n").split("\t")
                if not _ID.fullmatch(first):
                    continue
                if cells == [DONE]:
                    whole[first] = begun.pop(first, [])
                else:
                    begun.setdefault(first, []).append(tuple(_ESCAPE.sub(_unescaped, c) for c in cells))
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(f"{path}: not readable as UTF-8 text: {e}") from e
    return whole


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[1], match[1])
