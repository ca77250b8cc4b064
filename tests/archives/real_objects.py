"""The objects that real connectors wrote (tests/data/archives/objects)."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

from tests.data_files import data_path
from tidelake.archives import Sibling, SourceObject, beside

_NAME = re.compile(r"(.+)[+-](\d+)[+-](\d+)\.(?!keys|headers)[^/]*$")


def objects(folder: str, topic: str) -> list[tuple[Path, SourceObject]]:
    """The objects that the connector of this folder wrote for a topic."""
    found = []
    for path in sorted((data_path("archives/objects") / folder / topic).rglob("*.*")):
        if path.is_file() and (name := _NAME.fullmatch(path.name)):
            found.append((path, SourceObject(name[1], int(name[2]), path.name, int(name[3]), path.stat().st_size, "")))
    return found


def with_siblings(path: Path, source: SourceObject, folder: Path) -> tuple[Path, SourceObject]:
    """A copy of an object in a folder, with those beside it."""
    copy = folder / "object"
    shutil.copyfile(path, copy)
    siblings = []
    for other in sorted(path.parent.glob(re.sub(r"(\.\w+)+$", "", path.name) + ".[kh]*")):
        view = re.findall(r"\.(keys|headers)\.", other.name)[0]
        shutil.copyfile(other, beside(copy, view))
        siblings.append(Sibling(view, other.name, other.stat().st_size, ""))
    return copy, replace(source, siblings=tuple(siblings))
