"""`python docker/sbom_jars.py SBOM SUMS`: adds Spark's extra jars, of which SUMS has a line of sha256sum each, to a CycloneDX document."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

_JAR = re.compile(r"(?P<digest>[0-9a-f]{64})  (?P<group>[^_]+)_(?P<name>.+)-(?P<version>\d[\w.]*)\.jar")


def components(sums: str) -> list[dict[str, Any]]:
    """A component for each line. Raises ValueError for one that names no jar of Ivy's cache."""
    return [_component(line) for line in sums.splitlines()]


def _component(line: str) -> dict[str, Any]:
    found = _JAR.fullmatch(line)
    if found is None:
        raise ValueError(f"not `<sha256>  <group>_<name>-<version>.jar`: {line!r}")
    purl = f"pkg:maven/{found['group']}/{found['name']}@{found['version']}"
    known = {name: found[name] for name in ("group", "name", "version")}
    return {"type": "library", "bom-ref": purl, "purl": purl, **known, "hashes": [{"alg": "SHA-256", "content": found["digest"]}]}


def main(sbom: Path, sums: Path) -> None:
    """Rewrite the document with the jars after its other entries."""
    document = json.loads(sbom.read_text(encoding="utf-8"))
    document["components"] += components(sums.read_text(encoding="utf-8"))
    sbom.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
