"""Signed certificates: signed with the key of the environment, and the audit knows foreign, missing and moved signatures."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.audit.certified import CUTS, audited, changed
from tests.lake import cheap, lakes
from tidelake.config.lake_paths import certificate_key, intent_key, signature_key
from tidelake.errors import ConfigError
from tidelake.io.signing import KEY_VARIABLE, public_keys, signing_key
from tidelake.lake.cut_documents import find_certificate_bytes
from tidelake.lake.opened import Lake
from tidelake.publish.recovery import recover

pytest.importorskip("securesystemslib")
from cryptography.hazmat.primitives.asymmetric import ec

from tests.audit.signed import FOREIGN, OURS, THEIRS, private, public, signed_lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with signed_lake(tmp_path_factory.mktemp("signed")) as opened:
        yield opened


def test_a_signature_is_that_of_the_bytes_of_the_certificate(lake: Lake) -> None:
    envelope = json.loads(lake.store.read(signature_key("shop", 2)))
    content = lake.store.read(certificate_key("shop", 2))
    assert base64.b64decode(envelope["payload"]) == content
    signed = b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(content), content)
    OURS.public_key().verify(base64.b64decode(envelope["signatures"][0]["sig"]), signed)
    assert lake.store.head(signature_key("shop", 1)) is None


def test_signatures_are_compared_with_the_keys_that_count(lake: Lake, tmp_path: Path) -> None:
    ours, theirs = public(tmp_path, "ours.pem", OURS), public(tmp_path, "theirs.pem", THEIRS)
    found = audited(lake, keys=public_keys([theirs, ours]))
    assert (found.wrong, found.checked["signatures"]) == ([], CUTS - 1)
    assert [u.many for u in found.unchecked if u.why == "they are not signed"] == [1]
    found = audited(lake, keys=public_keys([theirs]))
    expected = [(n, signature_key("shop", n), "none of the given public keys signed it") for n in (2, 3, 4)]
    assert [(w.cut, w.key, w.what) for w in found.wrong] == expected
    found = audited(lake)
    assert [(u.what, u.many) for u in found.unchecked if "--public-key" in u.why] == [("signatures", CUTS - 1)]


@pytest.mark.parametrize(("change", "what"), FOREIGN)
def test_a_foreign_signature_is_found(lake: Lake, tmp_path: Path, change: Callable[[bytes], bytes | None], what: str) -> None:
    keys = public_keys([public(tmp_path, "ours.pem", OURS)])
    with changed(Path(lake.store.uri, signature_key("shop", 3)), change):
        (wrong,) = audited(lake, keys=keys).wrong
    assert (wrong.cut, wrong.key) == (3, signature_key("shop", 3))
    assert re.match(what, wrong.what), wrong.what


def test_a_signature_of_another_certificate_is_found(lake: Lake, tmp_path: Path) -> None:
    keys, two = public_keys([public(tmp_path, "ours.pem", OURS)]), lake.store.read(signature_key("shop", 2))
    with changed(Path(lake.store.uri, signature_key("shop", 3)), lambda _: two):
        (wrong,) = audited(lake, keys=keys).wrong
    assert (wrong.cut, wrong.what) == (3, "it is the signature of other bytes than the certificate's")


def test_a_wrong_key_is_refused_before_anything_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_ec = ec.generate_private_key(ec.SECP256R1())
    with Lake.of(lakes.feed(tmp_path)) as lake:
        for text, said in (
            ("-----BEGIN nothing", "TIDELAKE_SIGNING_KEY holds no private key in PEM without a password"),
            (private(of_ec), "TIDELAKE_SIGNING_KEY holds a private key of another kind than Ed25519"),
            (str(tmp_path / "none.pem"), "none.pem: No such file or directory"),
        ):
            monkeypatch.setenv(KEY_VARIABLE, text)
            with pytest.raises(ConfigError, match=said):
                cheap.publish(lake, None, 0)
            assert lake.store.head(intent_key("shop", 1)) is None
            for name in ("d.k", "d.idle", "d_changelog.k"):
                lake.catalog.drop(name, "shop")
        with pytest.raises(ConfigError, match=r"ec\.pem holds a public key of another kind than Ed25519"):
            public_keys([public(tmp_path, "ec.pem", of_ec)])


@pytest.mark.parametrize(
    "opened", [lambda _: signing_key({KEY_VARIABLE: private(OURS)}), lambda f: public_keys([public(f, "p.pem", OURS)])]
)
def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[[Path], object]) -> None:
    monkeypatch.setitem(sys.modules, "securesystemslib.signer", None)
    with pytest.raises(ConfigError, match="needs securesystemslib and cryptography, which are not installed") as error:
        opened(tmp_path)
    assert error.value.remedy == "pip install 'tidelake[sign]'"


def test_a_publishing_that_was_cut_short_before_its_certificate_is_signed_by_the_run_that_finishes_it(lake: Lake) -> None:
    keys = [signature_key("shop", CUTS), certificate_key("shop", CUTS)]
    before = [lake.store.read(key) for key in keys]
    for left in (0, 1):  # killed before and after the signature
        for key in keys[left:]:
            lake.store.delete(key)
        assert recover(lake.catalog, lake.store, "shop") is not None
        assert [lake.store.read(key) for key in keys] == before


def test_the_key_may_be_a_file_and_signing_again_gives_the_same_bytes(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text(private(OURS))
    key = signing_key({KEY_VARIABLE: str(tmp_path / "key.pem")})
    content = find_certificate_bytes(lake.store, "shop", 2)
    assert key is not None
    assert content is not None
    assert key.signed(content) == lake.store.read(signature_key("shop", 2))
    assert signing_key({}) is None
