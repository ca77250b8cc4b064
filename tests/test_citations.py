"""Every citation of a document and every link leads somewhere in this repository: to a file, and in it to a numbered heading or an anchor.

A citation is a path from the root and numbers: `docs/reference/protocols.md 9.1`, `docs/architecture.md 7, 8.1`, `… 6 to 8`. The number
11.14 is a heading, or item 14 of the numbered list in section 11. In Markdown a citation is a link as well, and its text is free.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT

FOLDERS = ("jobs", "tests", "dags")
CODE = sorted(p for folder in FOLDERS for p in (CHECKOUT / folder).rglob("*.py") if p != Path(__file__))  # whose examples are wrong ones
PAGES = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md"), *(CHECKOUT / "tests" / "data").rglob("*.md")])
OTHERS = [CHECKOUT / "Makefile", CHECKOUT / "pyproject.toml", CHECKOUT / ".ci" / "run", *sorted((CHECKOUT / "tests").rglob("*_cases.json"))]

NUMBERED = ["architecture.md", *(f"reference/{name}.md" for name in ("archives", "event-store", "platform", "protocols", "tidb"))]

_NUMBER = r"\d+(?:\.\d+)*"
_CITATION = re.compile(rf"(?<![\w./-])(?P<path>docs/[\w/-]+\.md)(?P<numbers>\s+{_NUMBER}(?:(?:, | to | and ){_NUMBER})*)?")
_HEADING = re.compile(rf"(?P<marks>#+) (?:(?P<number>{_NUMBER})\.? )?(?P<title>.*)")
_ITEM = re.compile(r"(\d+)\. ")
_LINK = re.compile(r"(?<!\\)\[[^\[\]]*\]\((?P<target>[^()\s]+)\)")
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_ELSEWHERE = re.compile(r"[a-z]+:")  # https:, mailto:
_DOCUMENTS = "architecture|protocols|archives|event-store|platform|tidb|canal_store"
UNCITED = {
    "a folder beside the repository": re.compile(r"\.\./shared\b"),
    "the design, which is docs/architecture.md": re.compile(r"\bdesign sections? \d|\bdesign\.md\b"),
    "a document without its path": re.compile(rf"(?<![\w/.-])(?:reference/)?(?:{_DOCUMENTS})\.md,?\s\d"),
}


def lines(markdown: str) -> Iterator[str]:
    """The lines outside blocks of code."""
    fence = ""
    for line in markdown.splitlines():
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        elif not fence:
            yield line


def headings(markdown: str) -> Iterator[tuple[str | None, str]]:
    """Number and whole title of every heading."""
    for line in lines(markdown):
        if m := _HEADING.fullmatch(line):
            yield m["number"], line.lstrip("#").strip()


@cache
def numbers(markdown: str) -> Counter[str]:
    """The numbers that may be cited: of headings, and of items of lists below them. Each how often it stands there."""
    found, section = Counter[str](), ""
    for line in lines(markdown):
        if heading := _HEADING.fullmatch(line):
            section = heading["number"] or ""
            found[section] += bool(section)
        elif section and (item := _ITEM.match(line)):
            found[f"{section}.{item[1]}"] += 1
    return +found


@cache
def anchors(markdown: str) -> set[str]:
    """What links to headings may end with, as GitHub makes it of the titles."""
    found = list[str]()
    for _, title in headings(markdown):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        found.append(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    again = Counter[str]()
    out = set[str]()
    for slug in found:
        out.add(f"{slug}-{again[slug]}" if again[slug] else slug)
        again[slug] += 1
    return out


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def wrong_citations(content: str, root: Path = CHECKOUT) -> Iterator[str]:
    """The citations that lead nowhere."""
    for m in _CITATION.finditer(content):
        target, cited = root / m["path"], re.findall(_NUMBER, m["numbers"] or "")
        if not target.is_file():
            yield f"{m['path']}: no such file"
        else:
            yield from (f"{m['path']} {n}: no such heading" for n in cited if n not in numbers(text(target)))


def wrong_links(markdown: str, page: Path, root: Path = CHECKOUT) -> Iterator[str]:
    """The relative links that lead nowhere. page: on which the text stands."""
    for m in _LINK.finditer(_CODE_SPAN.sub("", "\n".join(lines(markdown)))):
        path, _, anchor = m["target"].partition("#")
        target = (page.parent / path).resolve() if path else page
        if _ELSEWHERE.match(path):
            continue
        if not target.is_relative_to(root):
            yield f"{m['target']}: outside the repository"
        elif not target.exists():
            yield f"{m['target']}: no such file"
        elif anchor and target.suffix == ".md" and anchor not in anchors(text(target)):
            yield f"{m['target']}: no such heading"


def links_of_code(code: str) -> str:
    """The docstrings and comments of Python code, which may hold links."""
    said = [token.string for token in tokenize.generate_tokens(io.StringIO(code).readline) if token.type == tokenize.COMMENT]
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return "\n".join([*said, *(ast.get_docstring(n) or "" for n in ast.walk(ast.parse(code)) if isinstance(n, kinds))])


def uncited(content: str, *, markdown: bool = False) -> list[str]:
    """What reads as a citation and names no file of this repository."""
    plain = _LINK.sub("", content) if markdown else content
    return [f"{m[0]!r}: {why}" for why, pattern in UNCITED.items() for m in pattern.finditer(plain)]


def told(path: Path, found: Iterator[str] | list[str]) -> list[str]:
    return [f"{path.relative_to(CHECKOUT)}: {what}" for what in found]


def test_every_citation_leads_to_a_heading() -> None:
    everything = [*CODE, *PAGES, *OTHERS]
    cited = Counter(bool(m["numbers"]) for path in everything for m in _CITATION.finditer(text(path)))
    assert cited[True] > 200
    assert [wrong for path in everything for wrong in told(path, wrong_citations(text(path)))] == []


def test_every_relative_link_leads_to_a_file_and_a_heading() -> None:
    assert sum(len(_LINK.findall(text(path))) for path in PAGES) > 100
    assert [wrong for path in PAGES for wrong in told(path, wrong_links(text(path), path))] == []


def test_every_link_in_docstrings_and_comments_leads_somewhere_from_the_root() -> None:
    maybe = [path for path in CODE if "](" in text(path)]
    assert [wrong for path in maybe for wrong in told(path, wrong_links(links_of_code(text(path)), CHECKOUT / "README.md"))] == []


def test_nothing_is_cited_that_a_clone_does_not_have() -> None:
    everything = [*CODE, *PAGES, *OTHERS]
    assert [wrong for path in everything for wrong in told(path, uncited(text(path), markdown=path.suffix == ".md"))] == []


@pytest.mark.parametrize("page", NUMBERED)
def test_every_section_that_may_be_cited_has_a_number_of_its_own(page: str) -> None:
    found = list(headings(text(CHECKOUT / "docs" / page)))[1:]  # not the title
    assert [title for number, title in found if number is None and not title.startswith(("Part A", "Part B"))] == []
    assert [number for number, count in Counter(number for number, _ in found if number).items() if count > 1] == []


PAGE = """# Page

## 1. First part

```
## 9 no heading
```

### 1.2 A `b`: c_d

## 2 Second

1. one
2. two

## Loose

## Loose
"""
RIGHT = ["docs/page.md", "docs/page.md 1.", "docs/page.md 1, 1.2, 2.2).", "docs/page.md 1 to 2: x", "docs/page.md\n    2.1"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(PAGE)
    return tmp_path


@pytest.mark.parametrize("cited", RIGHT)
def test_a_right_citation_is_right(cited: str, root: Path) -> None:
    assert list(wrong_citations(f"as ({cited} says", root)) == []


@pytest.mark.parametrize(
    ("cited", "wrong"),
    [
        ("docs/other.md 1", ["docs/other.md: no such file"]),
        ("docs/page.md 9", ["docs/page.md 9: no such heading"]),
        ("docs/page.md 1, 1.3, 2.3", ["docs/page.md 1.3: no such heading", "docs/page.md 2.3: no such heading"]),
        ("docs/page.md\n    3", ["docs/page.md 3: no such heading"]),
    ],
)
def test_a_wrong_citation_is_told(cited: str, wrong: list[str], root: Path) -> None:
    assert list(wrong_citations(f"as ({cited}) says", root)) == wrong


def test_links_are_followed_to_the_heading(root: Path) -> None:
    right = "[a](page.md) [b](page.md#12-a-b-c_d) [c](#1-first-part) [d](page.md#loose-1) [e](https://x.y/z) `[f](none.md)`"
    assert list(wrong_links(PAGE + right, root / "docs" / "page.md", root)) == []
    wrong = "[a](none.md) [b](#9-no-heading) [c](page.md#loose-2) [d](../../x.md)"
    assert list(wrong_links(PAGE + wrong, root / "docs" / "page.md", root)) == [
        "none.md: no such file",
        "#9-no-heading: no such heading",
        "page.md#loose-2: no such heading",
        "../../x.md: outside the repository",
    ]


def test_what_has_no_path_is_no_citation() -> None:
    bare = ("protocols", "archives", "platform")
    for one in (
        "../" + "shared/vectors",
        "design" + " section 8",
        "reference/" + "protocols.md 1",
        *(f"({name}" + ".md 6.4)" for name in bare),
    ):
        assert len(uncited(f"see {one}, and more")) == 1, one
    for one in ("docs/reference/protocols.md 6.4", "docs/architecture.md 8", "docs/protocols.md says", "a design sections itself"):
        assert uncited(f"see {one}, and more") == [], one
    link = "[protocols" + ".md 6.4](reference/protocols.md#64-x)"
    assert (len(uncited(link)), uncited(link, markdown=True)) == (1, [])
