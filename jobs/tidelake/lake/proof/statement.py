"""The form of a certificate: an in-toto Statement v1 about the tables of a cut (docs/reference/certificate.md).

The version before wrote the members of `predicate` alone, without a chain. Both forms are read as the same members.

Source: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tidelake.lake.cut import Cut, TableCut

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:tidelake:certificate:v2"
_FORM = "urn:tidelake:certificate:v"  # and a number
PREVIOUS = "previous"  # member of every certificate of this form


def certificate_of(said: Mapping[str, Any], cut: Cut) -> bytes:
    """Return a certificate as it is stored. It depends on nothing else, so a lost one can be made again.

    Args:
        said: The members that were known before publishing.
        cut: The published cut.
    """
    predicate = dict(said) | {
        "published_at_ms": cut.published_at_ms,
        "tables": {i: t.model_dump() for i, t in cut.snapshots.items()},
        "changelogs": {i: t.model_dump() for i, t in cut.changelogs.items()},
    }
    if PREVIOUS not in said:  # the version before declared it
        return _json(predicate)
    return _json({"_type": STATEMENT, "subject": list(_subjects(cut)), "predicateType": PREDICATE, "predicate": predicate})


def newer_form(document: Mapping[str, Any]) -> str | None:
    """Return the predicate type of a certificate that a newer version of Tidelake wrote; None for others."""
    kind = str(document.get("predicateType", ""))
    number = kind.removeprefix(_FORM)
    return kind if kind.startswith(_FORM) and number.isdecimal() and int(number) > int(PREDICATE.removeprefix(_FORM)) else None


def predicate_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a certificate of either form. Raises ValueError for another one."""
    if "_type" not in document:
        return document
    predicate = document.get("predicate")
    if document["_type"] != STATEMENT or document.get("predicateType") != PREDICATE or not isinstance(predicate, dict):
        raise ValueError(f"{document['_type']}, {document.get('predicateType')}: not a certificate of Tidelake")
    return predicate


def metadata_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the locations of Iceberg metadata in a certificate, by UUID of the table."""
    found = (s["annotations"] for s in document.get("subject", ()))
    return {a["uuid"]: a["metadata"] for a in found if a["metadata"] is not None}


def _subjects(cut: Cut) -> Iterator[dict[str, Any]]:
    """The tables of the cut whose files are listed."""
    for kind, tables in (("snapshot", cut.snapshots), ("changelog", cut.changelogs)):
        for incarnation, t in tables.items():
            if t.uuid in cut.files:
                yield _subject(cut, kind, incarnation, t)


def _subject(cut: Cut, kind: str, incarnation: str, t: TableCut) -> dict[str, Any]:
    files = cut.files[t.uuid]
    return {
        "name": t.identifier,
        "digest": {"sha256": files.sha256},
        "annotations": {
            "kind": kind,
            "incarnation": incarnation,
            "uuid": t.uuid,
            "snapshot_id": t.snapshot_id,
            "metadata": cut.metadata.get(t.uuid),
            "rows": files.rows,
            "files": files.files,
            "size": files.size,
            "unproven": files.unproven,
        },
    }


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=1).encode()
