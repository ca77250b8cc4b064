"""docs/architecture.md 4 shows the packages and their layers as they are."""

from __future__ import annotations

import re
import tomllib

from tests.checkout import CHECKOUT

TEXT = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTION = TEXT[TEXT.index("\n## 4. ") : TEXT.index("\n## 5. ")]
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", SECTION, re.MULTILINE))
PACKAGE = CHECKOUT / "jobs" / "tidelake"


def test_every_package_has_a_row() -> None:
    assert sorted(ROWS) == sorted(p.parent.name for p in PACKAGE.glob("*/__init__.py"))


def test_modules_that_a_row_names_exist() -> None:
    named = [(package, name) for package, text in ROWS.items() for name in re.findall(r"`(\w+)[/`.]", text)]
    assert len(named) > 40
    missing = [f"{package}/{name}" for package, name in named if not any((PACKAGE / package).rglob(f"{name}*"))]
    assert set(missing) <= {"protocols/read", "protocols/scan"}  # functions


def test_the_layers_are_those_of_the_import_contract() -> None:
    contracts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    shown = SECTION[SECTION.index("```text\n") + 8 : SECTION.rindex("```")].splitlines()
    assert [line.split() for line in shown] == [[name.removeprefix("tidelake.") for name in layer.split(" | ")] for layer in layers]
