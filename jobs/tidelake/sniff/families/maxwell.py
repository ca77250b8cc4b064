"""Maxwell's own messages (docs/reference/protocols.md 9.3); those of TiCDC have the version word in their keys."""

from __future__ import annotations

from tidelake.protocols.maxwell_upstream import NOTHING, OWN, ROWS, STATEMENTS
from tidelake.sniff.families.hint import Hint, OptionValue, View

_FRAMING = "one JSON object a message"
_ROW, _STATEMENT = frozenset({"database", "table", "type", "ts", "data"}), frozenset({"database", "type", "ts", "sql"})


def look(view: View) -> Hint | None:
    """Recognise a row or a statement."""
    key, names = view.key or b"", view.names
    if key.startswith(b"\0") or not (names >= _ROW or names >= _STATEMENT):
        return None
    what = (view.members or {}).get("type")
    if what in STATEMENTS:
        said = "value is a JSON object with `type` and `sql`: a statement of Maxwell" if b'"scm":' not in key else ""
        return Hint(protocol="maxwell", evidence={"statement": said}, framing=_FRAMING) if said else None
    if what not in ROWS and what not in NOTHING:
        return None
    evidence, options = {"members": "value is a JSON object with `database`, `table`, `type`, `data`: Maxwell"}, dict[str, OptionValue]()
    if "xoffset" in names:
        evidence["xoffset"] = "`xoffset` is present: output_xoffset is on"
        options["output_xoffset"] = True
    if "position" in names:
        evidence["position"] = "`position` is present: output_binlog_position is on"
    return Hint(
        protocol="maxwell", evidence=evidence, framing=_FRAMING, options=options, weak=OWN.isdisjoint(names) and what in ROWS and not key
    )
