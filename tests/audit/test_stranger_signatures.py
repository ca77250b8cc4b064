"""The independent reader verifies signatures with openssl, and knows foreign, missing and moved ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.audit.certified import CUTS, changed
from tests.audit.stranger import audited, first_wrong
from tidelake.config.lake_paths import signature_key
from tidelake.lake.opened import Lake

pytest.importorskip("securesystemslib")
if shutil.which("openssl") is None:
    pytest.skip("needs the command openssl", allow_module_level=True)

from tests.audit.signed import FOREIGN, OURS, THEIRS, public, signed_lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with signed_lake(tmp_path_factory.mktemp("signed")) as opened:
        yield opened


def key_option(folder: Path) -> tuple[str, str]:
    return "--public-key", str(public(folder, "ours.pem", OURS))


def test_signatures_are_verified_with_the_keys_that_count(lake: Lake, tmp_path: Path) -> None:
    theirs = "--public-key", str(public(tmp_path, "theirs.pem", THEIRS))
    code, lines = audited(lake, *theirs, *key_option(tmp_path))
    assert (code, f"  checked: {CUTS - 1} signatures" in lines) == (0, True)
    assert "  not checked: 1 certificates: they are not signed" in lines
    assert first_wrong(lake, *theirs) == (2, signature_key("shop", 2), "a public key verifies it: False, expected True")


def test_without_a_key_form_and_payload_are_compared(lake: Lake) -> None:
    code, lines = audited(lake)
    what = f"  not checked: {CUTS - 1} signatures: without --public-key, only their form and payload are compared"
    assert (code, what in lines) == (0, True)
    two = lake.store.read(signature_key("shop", 2))
    with changed(Path(lake.store.uri, signature_key("shop", 3)), lambda _: two):
        assert first_wrong(lake) == (3, signature_key("shop", 3), "the payload is the certificate: False, expected True")


@pytest.mark.parametrize("change", [change for change, _ in FOREIGN])
def test_a_foreign_signature_is_found(lake: Lake, tmp_path: Path, change: Callable[[bytes], bytes | None]) -> None:
    with changed(Path(lake.store.uri, signature_key("shop", 3)), change):
        assert first_wrong(lake, *key_option(tmp_path))[:2] == (3, signature_key("shop", 3))
