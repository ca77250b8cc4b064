"""The Python blocks of the documentation compile and import what exists; settings in its TOML blocks are known."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from docs.generate import feed_schema
from tests.checkout import CHECKOUT

PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
_NAMED = re.compile(r"^\* `tidelake\.(?P<name>[\w.]+)", re.MULTILINE)


def blocks(language: str) -> list[tuple[Path, str]]:
    """(page, content) of every block of a language."""
    fence = re.compile(rf"^( *)```{language}(?: recipe)?\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
    found = ((page, re.sub(rf"^{m[1]}", "", m[2], flags=re.MULTILINE)) for page in PAGES for m in fence.finditer(page.read_text()))
    return [(page, text) for page, text in found if page.parent.name != "reference" or "tidelake" in text]


def imported(code: str) -> Iterator[tuple[str, str]]:
    """(module, name) of everything that the code imports from Tidelake."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tidelake":
            yield from ((node.module or "", alias.name) for alias in node.names)


def ids(found: list[tuple[Path, str]]) -> list[str]:
    return [f"{page.relative_to(CHECKOUT)}: {text.strip().splitlines()[0]}" for page, text in found]


PYTHON = blocks("python")
TOML = [(page, text) for page, text in blocks("toml") if "[[expect]]" not in text and "# expectations/" not in text]


def optional(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a part of the file: nothing is required."""
    properties = {key: optional(value) for key, value in schema.get("properties", {}).items()}
    return {key: value for key, value in schema.items() if key != "required"} | ({"properties": properties} if properties else {})


@pytest.mark.parametrize(("page", "code"), PYTHON, ids=ids(PYTHON))
def test_a_python_block_imports_what_exists(page: Path, code: str) -> None:
    assert [f"{module}.{name}" for module, name in imported(code) if not hasattr(import_module(module), name)] == []


def test_the_python_api_names_what_exists() -> None:
    names = [m["name"].rsplit(".", 1) for m in _NAMED.finditer((CHECKOUT / "docs" / "reference" / "python-api.md").read_text())]
    assert len(names) > 6
    for module, name in names:
        owner, _, attribute = module.rpartition(".") if module[module.rfind(".") + 1].isupper() else (module, "", "")
        where = import_module(f"tidelake.{owner}")
        assert hasattr(getattr(where, attribute) if attribute else where, name), f"tidelake.{module}.{name}"


@pytest.mark.parametrize(("page", "text"), TOML, ids=ids(TOML))
def test_a_toml_block_holds_settings_that_exist(page: Path, text: str) -> None:
    assert [e.message for e in jsonschema.Draft7Validator(optional(feed_schema())).iter_errors(tomllib.loads(text))] == []
