"""The folder of TiCDC's storage sink below a prefix."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sniff.messages import encoded
from tidelake.demo.messages.encode_canal_json import CanalJsonEncoder
from tidelake.io.storage import open_store
from tidelake.protocols import Context
from tidelake.sniff.archive import look

VERSION = "454930016746434000"
DAY = f"shop/orders/{VERSION}/2026-01-05"
ROWS = b"".join((value or b"") + b"\r\n" for _, value in encoded(CanalJsonEncoder())[:3])
LINES = b'"I","orders","shop",454930016746434001,1,"x"\r\n'


def filled(root: Path, below: str = "", form: str = "json", content: bytes = ROWS) -> None:
    store = open_store(str(root))
    for number in (1, 2):
        store.write(f"{below}{DAY}/CDC{number:020d}.{form}", content)
    store.write(f"{below}{DAY}/meta/CDC.index", f"CDC{2:020d}.{form}\n".encode())
    store.write(f"{below}shop/orders/meta/schema_{VERSION}_0123456789.json", b"{}")
    store.write(f"{below}metadata", b'{"checkpoint-ts":454930016746434005}')


@pytest.mark.parametrize(("form", "content", "protocol"), [("json", ROWS, "canal-json"), ("csv", LINES, "csv")])
def test_a_sink_is_recognised_with_its_checkpoint(tmp_path: Path, form: str, content: bytes, protocol: str) -> None:
    filled(tmp_path, "cdc/", form, content)
    archive = look(str(tmp_path), Context())
    assert (archive.sections, archive.unknown) == ((), ())
    (sink,) = archive.sinks
    assert (sink.base, sink.form, sink.tables, sink.files, sink.schemas) == (str(tmp_path / "cdc"), form, ("shop.orders",), 2, 1)
    assert (sink.checkpoint_ts, sink.problems) == (454930016746434005, ())
    assert (sink.verdict.guesses[0].protocol, sink.verdict.guesses[0].confidence) == (protocol, "certain")


def test_what_a_sink_lacks_is_told(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / DAY / f"CDC{1:020d}.json").unlink()
    (sink,) = look(str(tmp_path), Context()).sinks
    assert sink.problems == (f"{DAY}: 1 of 2 files are missing, the first is number 1",)


def test_looked_at_from_inside_it_is_the_same_sink(tmp_path: Path) -> None:
    filled(tmp_path)
    (sink,) = look(str(tmp_path / "shop"), Context()).sinks
    assert (sink.base, sink.tables, sink.files, sink.problems) == (str(tmp_path), ("shop.orders",), 2, None)


def test_metadata_alone_is_no_sink(tmp_path: Path) -> None:
    open_store(str(tmp_path)).write("x/metadata", b"{}")
    archive = look(str(tmp_path), Context())
    assert (archive.sinks, archive.unknown) == ((), ("x/metadata",))
