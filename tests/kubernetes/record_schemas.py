"""`python -m tests.kubernetes.record_schemas`: writes tests/data/kubernetes from the package kubernetes-validate, which must be installed.

It has all schemas of thirteen versions, in 17,000 files. Kept are those of the kinds that docker/kubernetes and Spark make, without
descriptions.
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.kubernetes.schemas import FOLDER, KINDS, VERSIONS


def subset(definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the definitions of our kinds and all that they refer to, without descriptions."""
    kept: dict[str, Any] = {}
    wanted = list(KINDS.values())
    while wanted:
        name = wanted.pop()
        if name not in kept:
            kept[name] = _bare(definitions[name])
            wanted += re.findall(r'"#/\$defs/([^"]+)"', json.dumps(kept[name]))
    return dict(sorted(kept.items()))


def _bare(schema: Any, named: bool = False) -> Any:
    """Without descriptions. named: its keys are the names of properties, one of which may be `description`."""
    if isinstance(schema, list):
        return [_bare(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    left = {k: v for k, v in schema.items() if named or (k != "description" and not k.startswith("x-"))}
    return {k: _bare(v, named=not named and k == "properties") for k, v in left.items()}


def main() -> None:
    """Write a file for each version."""
    package = find_spec("kubernetes_validate")
    if package is None or package.origin is None:
        sys.exit("pip install kubernetes-validate")
    for version in VERSIONS:
        source = Path(package.origin).parent / "kubernetes-json-schema" / f"v{version}-local-strict" / "_definitions.json"
        text = json.dumps(subset(json.loads(source.read_text())["$defs"]), separators=(",", ":"))
        (FOLDER / f"v{version}.json.xz").write_bytes(lzma.compress(text.encode()))


if __name__ == "__main__":
    main()
