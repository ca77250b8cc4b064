"""SQL text → tokens, and scripts → statements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.errors import ContractError
from tidelake.history.ddl.tokens import END, Cursor, statements

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


def kinds(sql: str) -> list[tuple[str, str]]:
    return [(t.kind, t.text) for t in Cursor(sql).tokens]


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("create Table t", [("word", "create"), ("word", "Table"), ("word", "t")]),
        ("`CREATE` `a``b` `x y`", [("name", "CREATE"), ("name", "a`b"), ("name", "x y")]),
        ("'it''s' \"a\"\"b\" ''", [("string", "it's"), ("string", 'a"b'), ("string", "")]),
        (r"'a\'b' 'a\\b' 'a\nb' 'a\0b'", [("string", "a'b"), ("string", "a\\b"), ("string", "a\nb"), ("string", "a\0b")]),
        ("_utf8mb4'中' _BINARY 'x'", [("introducer", "_utf8mb4"), ("string", "中"), ("introducer", "_BINARY"), ("string", "x")]),
        ("N'wide (text'", [("string", "wide (text")]),
        ("b'0101' 0b11 B'1'", [("bits", "0101"), ("bits", "11"), ("bits", "1")]),
        ("x'1F' 0x1f X''", [("hex", "1F"), ("hex", "1f"), ("hex", "")]),
        ("1 1.5 1e5 1.5e-3", [("number", "1"), ("number", "1.5"), ("number", "1e5"), ("number", "1.5e-3")]),
        ("-1", [("word", "-"), ("number", "1")]),
        ("PRIMARY \t KEY NOT\n NULL", [("word", "PRIMARY"), ("word", "KEY"), ("word", "NOT"), ("word", "NULL")]),
        ("a-- c\n b # d\n /* e; */ c /*!40101 f */", [("word", "a"), ("word", "b"), ("word", "c")]),
        ("a /*T![clustered_index] CLUSTERED */ b /*T! x */", [("word", "a"), ("word", "b")]),
        ("db.2t `d`.t", [("word", "db"), ("word", "."), ("word", "2t"), ("name", "d"), ("word", "."), ("word", "t")]),
        ("RENAME TABLE a", [("word", "RENAME"), ("word", "TABLE"), ("word", "a")]),
        ("ANALYZE TABLE a", [("word", "ANALYZE"), ("word", "TABLE"), ("word", "a")]),
        ("", []),
        ("-- nothing", []),
        (";;", []),
        ("DROP TABLE a;; -- done", [("word", "DROP"), ("word", "TABLE"), ("word", "a")]),
    ],
)
def test_a_statement_s_tokens(sql: str, wanted: list[tuple[str, str]]) -> None:
    assert kinds(sql) == wanted


@given(NAMES)
def test_a_back_quoted_name_may_hold_any_characters(name: str) -> None:
    assert kinds("x `" + name.replace("`", "``") + "`") == [("word", "x"), ("name", name)]


@given(NAMES)
def test_a_quoted_string_may_hold_any_characters(text: str) -> None:
    assert kinds("x '" + text.replace("\\", "\\\\").replace("'", "''") + "'") == [("word", "x"), ("string", text)]


def test_a_token_knows_its_place_in_characters() -> None:
    sql = "😀 `é` x (1, 'a')"
    assert [sql[t.start : t.end + 1] for t in Cursor(sql).tokens] == ["😀", "`é`", "x", "(", "1", ",", "'a'", ")"]


def test_a_quoted_name_is_never_a_keyword() -> None:
    assert [t.upper for t in Cursor("select `select` 'select' SELECT").tokens] == ["SELECT", "", "", "SELECT"]


@pytest.mark.parametrize("sql", ["'open", "`open", "/* open", '"open', "\ud800'"])
def test_what_is_never_closed_is_no_sql(sql: str) -> None:
    with pytest.raises(ContractError, match=r"^CONTRACT: not SQL from line 1 on: "):
        Cursor(sql)


def test_of_a_script_that_is_no_sql_the_line_is_told_and_no_other() -> None:
    before, after = "CREATE TABLE `a\nb` (x INT);\n" * 20, "USE `d`;\nCREATE TABLE c (x CHAR DEFAULT 'y');\n" * 20
    with pytest.raises(ContractError) as error:
        statements(before + "CREATE TABLE t (a CHAR DEFAULT 'x);\n" + after)
    assert error.value.message == 'not SQL from line 41 on: "CREATE TABLE t (a CHAR DEFAULT \'x);"'


@pytest.mark.parametrize("sql", ["DROP TABLE a; DROP TABLE b", "a;b", ";a"])
def test_two_statements_are_not_one(sql: str) -> None:
    with pytest.raises(ContractError) as error:
        Cursor(sql)
    assert error.value.message == f"more than one statement: {sql!r}"


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("", []),
        (" ; ;; ", []),
        ("-- only a comment", []),
        ("A", ["A"]),
        ("A;B", ["A", "B"]),
        (" A ;\n-- between; \n B c ;; ", ["A", "B c"]),
        ("A `x;y` 'p;q' \"r;s\" /* t;u */;B", ["A `x;y` 'p;q' \"r;s\" /* t;u */", "B"]),
        ("SET NAMES utf8; RENAME TABLE a TO b; ANALYZE TABLE c;", ["SET NAMES utf8", "RENAME TABLE a TO b", "ANALYZE TABLE c"]),
        ("/*!40101 SET x */;\nUSE a;", ["USE a"]),
    ],
)
def test_a_script_is_cut_at_its_semicolons_and_nowhere_else(script: str, wanted: list[str]) -> None:
    assert statements(script) == wanted


@given(st.lists(st.sampled_from(["USE `a;b`", "CREATE TABLE `é` (x int)", "DROP TABLE 😀", "TRUNCATE 'x;''y'"])))
def test_joined_statements_are_taken_apart_again(wanted: list[str]) -> None:
    assert statements(";\n".join(wanted)) == wanted


def test_a_cursor_reads_words_in_order_and_only_whole_phrases() -> None:
    c = Cursor("if not exists x")
    assert not c.skip("IF", "EXISTS")
    assert c.next.text == "if"
    assert c.skip("IF", "NOT", "EXISTS")
    assert (c.next.text, c.peek(1)) == ("x", END)
    assert c.take().text == "x"
    with pytest.raises(ContractError, match="ends too early"):
        c.take()


def test_what_was_expected_is_said() -> None:
    with pytest.raises(ContractError) as error:
        Cursor("a b").expect("TO")
    assert error.value.message == "expected TO before 'a' in 'a b'"
    with pytest.raises(ContractError, match=r"nothing is expected before 'a' in 'a b'"):
        Cursor("a b").expect_end()


@pytest.mark.parametrize(
    ("sql", "wanted"), [("t", ("db", "t")), ("x.t", ("x", "t")), ("`a.b`.`c``d`", ("a.b", "c`d")), ("`table`", ("db", "table"))]
)
def test_a_table_s_name_may_be_qualified(sql: str, wanted: tuple[str, str]) -> None:
    assert Cursor(sql).table("db") == wanted


@pytest.mark.parametrize("sql", ["", "(", "'x'", "5", "a.", "a.(", ".a", "a.'b'"])
def test_what_is_no_name_is_refused(sql: str) -> None:
    with pytest.raises(ContractError):
        Cursor(sql).table("db")


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [("(a)", ("a",)), ("(`a`, b(10) DESC, `c d`)", ("a", "b", "c d")), ("((lower(a)))", ("(",))],
)
def test_the_columns_of_an_index(sql: str, wanted: tuple[str, ...]) -> None:
    assert Cursor(sql).names() == wanted


@pytest.mark.parametrize(("sql", "said"), [("()", "an index without columns in '()'"), ("(a", "the statement ends too early: '(a'")])
def test_an_index_has_columns(sql: str, said: str) -> None:
    with pytest.raises(ContractError) as error:
        Cursor(sql).names()
    assert error.value.message == said


def test_a_clause_ends_at_a_comma_outside_parentheses() -> None:
    c = Cursor("x (a, (b, c)) 'd, e', next")
    c.skip_clause()
    assert [t.text for t in c.tokens[c.at :]] == [",", "next"]
