"""Masks in feed.toml: what they may be, and that their key is told to nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import feeds
from tests.cli.calls import call
from tests.config.feed_texts import PLAIN, SECRET, loaded, refused
from tidelake.config.feed import load_feed, unset_variables
from tidelake.config.policy import KEY_BYTES
from tidelake.decode.landed_hour import decode_job
from tidelake.decode.record import decoder_id
from tidelake.wire.masks import mark, marks_of

KEYED = '[policy]\nmask_key = "${PASSWORD}"\n'


def column(mask: str) -> str:
    return f'[columns."shop.people".mail]\nmask = {mask}\n'


@pytest.mark.parametrize("mask", ["drop", "null", "hash", "truncate(0)", "truncate(12)"])
def test_a_column_s_mask_is_one_of_four(tmp_path: Path, mask: str) -> None:
    feed = loaded(tmp_path, PLAIN + KEYED + column(f'"{mask}"'))
    assert feed.rules_of(["Shop.People"], ["MAIL"]).mask == mask
    assert feed.rules_of(["shop.people"], ["name"]).mask is None


@pytest.mark.parametrize("mask", ['"mask"', '"truncate"', '"truncate(-1)"', '"hash(1)"', "4", "true", "{ truncate = 4 }"])
def test_another_mask_is_refused(tmp_path: Path, mask: str) -> None:
    said = refused(tmp_path, PLAIN + KEYED + column(mask))
    assert said.startswith('columns.shop.people.mail.mask: "drop", "null", "hash" or "truncate(n)"')


def test_hashes_need_a_key(tmp_path: Path) -> None:
    said = 'the file: columns.shop.people.mail.mask: "hash" needs a key: [policy] mask_key = "${NAME}"'
    assert refused(tmp_path, PLAIN + column('"hash"')) == said
    assert loaded(tmp_path, PLAIN + column('"null"')).policy.mask_key is None


@pytest.mark.parametrize("key", [SECRET, f"${{STAGE}}{SECRET}", "x"])
def test_a_key_in_the_file_is_refused_and_not_repeated(tmp_path: Path, key: str) -> None:
    said = refused(tmp_path, f'{PLAIN}[policy]\nmask_key = "{key}"\n')
    assert said == 'policy.mask_key: should be "${NAME}", a variable of the environment that holds the key'


def test_a_short_key_is_refused_and_not_repeated(tmp_path: Path) -> None:
    said = refused(tmp_path, f'{PLAIN}[policy]\nmask_key = "${{STAGE}}"\n')
    assert said == f"policy.mask_key: the variable should hold {KEY_BYTES} bytes or more (found '${{STAGE}}')"


def test_debezium_truncates_nothing(tmp_path: Path) -> None:
    assert "truncate" in refused(tmp_path, PLAIN.replace('"open"', '"debezium"', 1) + column('"truncate(3)"'))


def test_the_key_is_in_no_text_of_the_feed_nor_of_its_jobs(tmp_path: Path) -> None:
    feed = loaded(tmp_path, PLAIN + KEYED + column('"hash"'))
    assert feed.policy.mask_key == SECRET
    (tmp_path / "shop" / "tables.sql").write_text("")
    texts = [repr(feed), str(feed), repr(feed.policy), decode_job(feed, []).model_dump_json(), decoder_id(feed)]
    assert [t for t in texts if SECRET in t] == []
    assert decode_job(feed, []).masks.marks == marks_of(feed) == [("shop.people", "mail", mark("hash", SECRET.encode()))]
    assert unset_variables(load_feed(tmp_path, "shop", expand=False), {}) == ["PASSWORD", "STAGE"]


def test_events_in_clear_are_decoded_as_without_masks(tmp_path: Path) -> None:
    plain, masked, late = (
        loaded(tmp_path, PLAIN + more) for more in ("", column('"null"'), '[policy]\nmask_at = "order"\n' + column('"null"'))
    )
    assert decoder_id(late) == decoder_id(plain) != decoder_id(masked)
    assert decode_job(late, []).masks.marks == []


@pytest.mark.parametrize(
    ("name", "mask", "code", "said"),
    [
        ("id", "null", 2, "id is in the key of shop.orders: rows would become one"),
        ("id", "hash", 0, "ok"),
        ("note", "truncate(3)", 0, "ok"),
        ("total", "truncate(3)", 2, "decimal(9,2) has no characters to truncate"),
        ("nots", "null", 0, 'note: mask of columns."shop.orders".nots, which tables.sql does not define'),
    ],
)
def test_check_tells_of_masks_that_cannot_be_and_of_those_without_a_column(
    tmp_path: Path, name: str, mask: str, code: int, said: str
) -> None:
    masks = f'[policy]\nmask_key = "${{MASK_KEY}}"\n[columns."shop.orders".{name}]\nmask = "{mask}"\n'
    tables = feeds.TABLES.replace("note VARCHAR(20)", "note VARCHAR(20), total DECIMAL(9,2)")
    feeds.write(tmp_path, feed=feeds.FEED + masks, tables=tables)
    done = call("check", "--schemas", str(tmp_path))
    assert done.code == code
    assert said in done.out
