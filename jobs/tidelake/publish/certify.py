"""Completes an intent with what its certificate proves: the tables' files, the input, the definitions, and the certificate before it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import tidelake
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import manifest_key
from tidelake.io.signing import signing_key
from tidelake.io.storage import Store
from tidelake.lake.cut import Abandoned, Cut, Intent
from tidelake.lake.cut_documents import find_certificate_bytes, find_outcome
from tidelake.lake.opened import Lake
from tidelake.lake.proof.model import Kind
from tidelake.publish.listed_files import list_files
from tidelake.spark.spread import THREADS

_OF_FOLDER = ("feed.toml", "tables.sql", "ddl.jsonl")


def certify(lake: Lake, intent: Intent, kind: Kind) -> None:
    """Complete an intent before it is declared. Repeatable.

    Args:
        lake: The feed's lake.
        intent: The intent, with the members of the certificate that the publication itself knows.
        kind: What is published.

    Raises:
        StorageError: A file that the publication adds cannot be read.
        ConfigError: The signing key is wrong.
    """
    signing_key()  # a wrong one is named before anything is declared
    list_files(lake, intent)
    cut = intent.cut
    tables = (*cut.snapshots.values(), *cut.changelogs.values())
    intent.certificate |= {
        "kind": kind,
        "parent_seq": cut.parent_seq,
        "inputs": {"manifests": _manifests(lake.store, cut.feed, intent.certificate.get("earlier_generations", {}) | cut.generations)},
        "definitions": _definitions(lake.feed),
        "uncovered": sorted(t.identifier for t in tables if t.uuid not in cut.files),
        **_chain(lake.store, cut),
    }


def _chain(store: Store, cut: Cut) -> dict[str, Any]:
    """The certificate before this one, and the numbers between that were abandoned."""
    abandoned = list[int]()
    for seq in range(cut.seq - 1, 0, -1):
        content = find_certificate_bytes(store, cut.feed, seq)
        if content is None and isinstance(find_outcome(store, cut.feed, seq), Abandoned):
            abandoned.insert(0, seq)
            continue
        sha256 = None if content is None else hashlib.sha256(content).hexdigest()
        return {"previous": {"cut": seq, "sha256": sha256}, "abandoned": abandoned}
    return {"previous": None, "abandoned": abandoned}


def _manifests(store: Store, feed: str, generations: dict[str, int]) -> list[dict[str, Any]]:
    """The manifests of these hours."""

    def one(hour: str) -> dict[str, Any]:
        key = manifest_key(feed, hour, generations[hour])
        content = store.read_if_present(key)
        sha256 = None if content is None else hashlib.sha256(content).hexdigest()
        return {"hour": hour, "generation": generations[hour], "key": key, "sha256": sha256}

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, sorted(generations)))


def _definitions(feed: Feed) -> dict[str, Any]:
    """The digests of the feed's files and of the installed package."""
    return {"files": definition_files(feed), "package": {"version": tidelake.__version__, "sha256": package_sha256()}}


def definition_files(feed: Feed) -> dict[str, str]:
    """Return the sha256 of the feed's files, by path below its folder."""
    return {path.relative_to(feed.folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in _files(feed.folder)}


def _files(folder: Path) -> Iterator[Path]:
    yield from (folder / name for name in _OF_FOLDER if (folder / name).is_file())
    yield from sorted(folder.glob("expectations/*.toml"))


@cache
def package_sha256() -> str:
    """Return the sha256 over the package's modules: the line `path TAB sha256 LF` of each, sorted by path below the package."""
    root = Path(tidelake.__file__).parent
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    lines = [f"{name}\t{hashlib.sha256((root / name).read_bytes()).hexdigest()}\n" for name in names]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
