"""Tokens of a DDL statement, with a cursor over them. Only this module uses sqlglot.

Its MySQL lexer handles comments (including TiDB's feature comments `/*T![…] … */`, which do not affect rows), quoting, introducers, bit and
hex literals. sqlglot's parser is not used: it cannot parse 9 of the 45 statements of the vectors (README, Decisions); ours parses all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from tidelake.errors import ContractError

_LITERALS = {
    TokenType.STRING: "string",
    TokenType.NATIONAL_STRING: "string",
    TokenType.NUMBER: "number",
    TokenType.IDENTIFIER: "name",
    TokenType.INTRODUCER: "introducer",
    TokenType.BIT_STRING: "bits",
    TokenType.HEX_STRING: "hex",
}


@dataclass(frozen=True, slots=True)
class Token:
    """A token. kind: word (also unquoted names and punctuation), name (back-quoted), string, number, introducer, bits, hex."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """Upper-case text of a word; empty for quoted text, so that no name is mistaken for a keyword."""
        return self.text.upper() if self.kind == "word" else ""


END = Token("end", "", -1, -1)


def statements(script: str) -> list[str]:
    """Return the statements of a script in order, without semicolons. Raises ContractError."""
    tokens = _lex(script)
    out: list[str] = []
    start: int | None = None
    for token in tokens:
        if token.upper == ";":
            if start is not None:
                out.append(script[start : token.start].strip())
            start = None
        elif start is None:
            start = token.start
    return out if start is None else [*out, script[start:].strip()]


class Cursor:
    """Reads a statement's tokens in order."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        found = _lex(sql)
        while found and found[-1].upper == ";":
            found.pop()
        if any(t.upper == ";" for t in found):
            raise ContractError(f"more than one statement: {sql!r}")
        self.tokens = found
        self.at = 0

    @property
    def next(self) -> Token:
        """The next token; END after the last."""
        return self.peek(0)

    def peek(self, ahead: int) -> Token:
        """Return a later token."""
        i = self.at + ahead
        return self.tokens[i] if i < len(self.tokens) else END

    def take(self) -> Token:
        """Return the next token and move on. Raises ContractError at the end."""
        if self.next is END:
            raise ContractError(f"the statement ends too early: {self.sql!r}")
        self.at += 1
        return self.tokens[self.at - 1]

    def skip(self, *words: str) -> bool:
        """Skip these words if they come next, in this order. Return whether they did."""
        if all(self.peek(i).upper == word for i, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        """Skip these words. Raises ContractError if others come."""
        if not self.skip(*words):
            raise ContractError(f"expected {' '.join(words)} before {self.next.text!r} in {self.sql!r}")

    def expect_end(self) -> None:
        """Raise ContractError if tokens are left."""
        if self.next is not END:
            raise ContractError(f"nothing is expected before {self.next.text!r} in {self.sql!r}")

    def identifier(self) -> str:
        """Read a name, quoted or not."""
        token = self.take()
        if token.kind not in ("word", "name") or token.upper in ("(", ")", ",", "."):
            raise ContractError(f"expected a name, found {token.text!r} in {self.sql!r}")
        return token.text

    def table(self, database: str) -> tuple[str, str]:
        """Read `table` or `database`.`table`."""
        first = self.identifier()
        return (first, self.identifier()) if self.skip(".") else (database, first)

    def parenthesised(self) -> list[Token]:
        """Read a balanced pair of parentheses and return the tokens between them."""
        self.expect("(")
        inner: list[Token] = []
        depth = 1
        while True:
            token = self.take()
            depth += {"(": 1, ")": -1}.get(token.upper, 0)
            if depth == 0:
                return inner
            inner.append(token)

    def names(self) -> tuple[str, ...]:
        """Read index columns: `(a, b(10) DESC)` gives a, b."""
        inner = self.parenthesised()
        if not inner:
            raise ContractError(f"an index without columns in {self.sql!r}")
        starts = [i for i, _ in enumerate(inner) if i == 0 or inner[i - 1].upper == ","]
        return tuple(inner[i].text for i in starts)

    def preview(self) -> str:
        """The next words, for messages."""
        return " ".join(t.text for t in self.tokens[self.at : self.at + 3])

    def skip_clause(self) -> None:
        """Skip to the next comma or closing parenthesis outside inner parentheses, or to the end."""
        while self.next is not END and self.next.upper not in (",", ")"):
            if self.next.upper == "(":
                self.parenthesised()
            else:
                self.take()


_GUARD = "("  # prefix: the lexer swallows what follows RENAME, ANALYZE, … if that is a statement's first word
_LINES = 2000  # maximum lines of a script that are searched for a mistake


_PARTITIONING = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|\#[^\n]*
    |(?P<open>/\*!\d*)(?P<text>\s+PARTITION\s(?:[^*]|\*(?!/))*)\*/|/\*(?:[^*]|\*(?!/))*\*/""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)


def _lex(sql: str) -> list[Token]:
    try:
        found = _tokens(_executed(sql))
    except SqlglotError as e:
        raise ContractError(_unreadable(sql)) from e
    out: list[Token] = []
    for t in found:
        kind, start = _LITERALS.get(t.token_type, "word"), t.start - len(_GUARD)
        if kind != "word":
            out.append(Token(kind, t.text, start, t.end - len(_GUARD)))
            continue
        for word in re.finditer(r"\S+", t.text):  # PRIMARY KEY and the like are one token
            out.append(Token("word", word[0], start + word.start(), start + word.end() - 1))
    return out


def _executed(sql: str) -> str:
    """Replace `/*!50100 PARTITION BY … */`, as MySQL's SHOW CREATE TABLE writes it, by its text, at the same position."""
    if "/*!" not in sql:
        return sql
    return _PARTITIONING.sub(lambda m: f"{' ' * len(m['open'])}{m['text']}  " if m["open"] else m[0], sql)


def _tokens(sql: str) -> list[sqlglot.Token]:
    return sqlglot.tokenize(_GUARD + sql, read="mysql")[1:]


def _unreadable(sql: str) -> str:
    """Error message with the line after the longest readable part; there the unclosed quote begins. The lexer reports only the end."""
    lines = sql.split("\n")
    readable = max(n for n in range(min(len(lines), _LINES)) if n == 0 or _reads("\n".join(lines[:n])))
    return f"not SQL from line {readable + 1} on: {lines[readable][:200]!r}"


def _reads(sql: str) -> bool:
    try:
        _tokens(sql)
    except SqlglotError:
        return False
    return True
