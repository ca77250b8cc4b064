"""Files that are no feed at all, and what is never repeated of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.feed_texts import ENVIRONMENT, HEAD, LAKE, PLAIN, refused, written
from tidelake.config.feed import feed_names, load_feed
from tidelake.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("protocol = \n", "not TOML: Invalid value (at line 1, column 12)"),
        (PLAIN + "[source]\n", "not TOML: Cannot declare ('source',) twice (at line 10, column 8)"),
        (PLAIN + 'uri = "x"\n', "not TOML: Cannot overwrite a value (at line 10, column 10)"),
    ],
)
def test_what_is_not_toml_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text) == said


def test_bytes_that_are_not_utf_8_are_no_toml(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "feed.toml").write_bytes(b'protocol = "\xff"')
    with pytest.raises(ConfigError, match=r"feed\.toml: not TOML: 'utf-8' codec can't decode byte 0xff in position 12"):
        load_feed(tmp_path, "shop")


@pytest.mark.parametrize(
    "text",
    [
        PLAIN + 'password = "${PASSWORD}"\n',
        PLAIN + '[options]\nenable_tidb_extension = "${PASSWORD}"\n',
        PLAIN + '[policy]\non_gap = "${PASSWORD}"\n',
        PLAIN + '[policy.on_finding]\nGAP = "${PASSWORD}"\n',
        PLAIN + '[policy]\nignore_ddl = ["${PASSWORD}"]\n',
        PLAIN + '[columns."a.b"]\nc = "${PASSWORD}"\n',
        PLAIN.replace('"aiven-jsonl"', '"${PASSWORD}"'),
        PLAIN.replace('"open"', '"${PASSWORD}"'),
        PLAIN.replace("partitions = 3", 'partitions = {"shop.open" = "${PASSWORD}"}'),
        PLAIN.replace("[source]", 'time_zone = "${PASSWORD}"\n[source]'),
        PLAIN.replace('["shop.open"]', '"${PASSWORD}"'),
        HEAD + 'source = "${PASSWORD}"\n' + LAKE,
        PLAIN + 'namespace = "{${PASSWORD}}"\n',
    ],
)
def test_no_mistake_shows_a_value_of_the_environment(tmp_path: Path, text: str) -> None:
    said = refused(tmp_path, text)
    assert "${PASSWORD}" in said or "unknown key" in said or "should be a table" in said


def test_a_feed_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    written(tmp_path, PLAIN, "b")
    written(tmp_path, PLAIN, "a")
    (tmp_path / "not-a-feed").mkdir()
    assert feed_names(tmp_path) == ["a", "b"]
    with pytest.raises(ConfigError, match=r"no feed 'c' in .*; existing feeds: a, b"):
        load_feed(tmp_path, "c")
    with pytest.raises(ConfigError, match=r"existing feeds: none"):
        load_feed(tmp_path / "nowhere", "c")


@pytest.mark.parametrize("name", ["Shop", "9lives", "a.b", "ä"])
def test_a_folder_s_name_must_do_as_a_feed_s_name(tmp_path: Path, name: str) -> None:
    written(tmp_path, PLAIN, name)
    with pytest.raises(ConfigError, match=r"is the feed's name; use a-z, 0-9, _ and -, a letter first"):
        load_feed(tmp_path, name, ENVIRONMENT)
