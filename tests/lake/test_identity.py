"""A lake knows its catalog and the catalog the lake of every feed: others are refused, and nothing is written to them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.calls import call
from tests.lake import cheap, lakes
from tests.lake.killed import Killed, kill_at
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import IDENTITY
from tidelake.errors import ConfigError
from tidelake.io.storage import open_store
from tidelake.lake.cut_documents import next_seq
from tidelake.lake.cuts import newest_cut
from tidelake.lake.identity import Identity
from tidelake.lake.opened import Lake
from tidelake.publish.abandon import abandon
from tidelake.publish.recovery import recover


def made(feed: Feed) -> None:
    """A lake with a cut, written by a run."""
    with Lake.of(feed) as lake, lake.hold("order"):
        cheap.publish(lake, None, 0)


def with_places(folder: Path, uri: str = "lake", catalog: str = "catalog.db") -> Feed:
    return lakes.feed(folder, lake={"uri": str(folder / uri), "catalog": f"jdbc:sqlite:{folder}/{catalog}"})


def refused(feed: Feed) -> ConfigError:
    with pytest.raises(ConfigError) as error, Lake.of(feed):
        pass
    return error.value


def test_lake_and_catalog_know_each_other_after_the_first_run_that_writes(tmp_path: Path) -> None:
    feed = with_places(tmp_path)
    made(feed)
    known = Identity.model_validate_json(open_store(feed.lake.uri).read(IDENTITY))
    with Lake.of(feed) as lake:
        table = lake.catalog.load("_tidelake.published")
        assert (known.uri, known.catalog, known.place) == (feed.lake.uri, table.uuid, f"jdbc:sqlite:{tmp_path}/catalog.db")
        assert table.properties["tidelake.lake.shop"] == known.id
        with lake.hold("order"):
            pass
    assert Identity.model_validate_json(open_store(feed.lake.uri).read(IDENTITY)) == known


@pytest.mark.parametrize("other", ["none", "empty file", "another lake's"])
def test_another_catalog_is_refused_with_both_named_and_left_as_it_was(tmp_path: Path, other: str) -> None:
    made(with_places(tmp_path))
    if other == "empty file":
        (tmp_path / "wrong.db").touch()
    if other == "another lake's":
        made(with_places(tmp_path, "lake2", "wrong.db"))
    before = (tmp_path / "wrong.db").read_bytes() if other == "another lake's" else None
    error = refused(with_places(tmp_path, catalog="wrong.db"))
    assert (error.code, error.exit_code) == ("WRONG_CATALOG", 2)
    found = "which is another one" if other == "another lake's" else "which is empty"
    assert error.message == (
        f"the lake {tmp_path}/lake belongs to jdbc:sqlite:{tmp_path}/catalog.db, feed.toml names jdbc:sqlite:{tmp_path}/wrong.db, {found}"
    )
    if before is not None:
        assert (tmp_path / "wrong.db").read_bytes() == before
    assert (tmp_path / "wrong.db").exists() == (other != "none")


@pytest.mark.parametrize("known", [True, False])
def test_an_empty_catalog_under_a_lake_with_cuts_is_refused_also_where_the_lake_is_of_before(tmp_path: Path, known: bool) -> None:
    made(with_places(tmp_path))
    if not known:
        (tmp_path / "lake" / IDENTITY).unlink()
    assert refused(with_places(tmp_path, catalog="wrong.db")).code == "WRONG_CATALOG"


def test_another_lake_is_refused_once_the_feed_is_published(tmp_path: Path) -> None:
    made(with_places(tmp_path))
    error = refused(with_places(tmp_path, "lake2"))
    assert (error.code, error.exit_code) == ("WRONG_LAKE", 2)
    assert f"feed shop is published in {tmp_path}/lake, feed.toml names {tmp_path}/lake2, which has none of its cuts" in error.message
    assert not (tmp_path / "lake2").exists()
    with Lake.of(lakes.feed(tmp_path, "other", lake=with_places(tmp_path, "lake2").lake)) as lake, lake.hold("order"):
        pass  # another feed may have another lake in one catalog


def test_a_feed_that_has_published_nothing_may_go_elsewhere(tmp_path: Path) -> None:
    for uri in ("lake", "lake2"):
        with Lake.of(with_places(tmp_path, uri)) as lake, lake.hold("order"):
            pass


def test_a_lost_lake_json_is_written_again_as_it_was(tmp_path: Path) -> None:
    feed = with_places(tmp_path)
    made(feed)
    was = Identity.model_validate_json(open_store(feed.lake.uri).read(IDENTITY))
    (tmp_path / "lake" / IDENTITY).unlink()
    with Lake.of(feed) as lake, lake.hold("order"):
        pass
    assert Identity.model_validate_json(open_store(feed.lake.uri).read(IDENTITY)) == was


def test_a_copy_of_a_lake_is_refused(tmp_path: Path) -> None:
    made(with_places(tmp_path))
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    assert "is a copy of" in refused(with_places(tmp_path, "copy")).message


def test_a_lake_of_before_gets_its_identity_at_the_first_run_that_writes(tmp_path: Path) -> None:
    feed = with_places(tmp_path)
    with Lake.of(feed) as lake:
        cheap.publish(lake, None, 0)
    assert open_store(feed.lake.uri).head(IDENTITY) is None
    with Lake.of(feed) as lake:
        assert open_store(feed.lake.uri).head(IDENTITY) is None
        with lake.hold("order"):
            pass
    assert open_store(feed.lake.uri).head(IDENTITY) is not None
    assert refused(with_places(tmp_path, catalog="wrong.db")).code == "WRONG_CATALOG"
    assert refused(with_places(tmp_path, "lake2")).code == "WRONG_LAKE"


def test_a_catalog_that_is_an_older_copy_is_not_rolled_forward(tmp_path: Path) -> None:
    feed = with_places(tmp_path)
    made(feed)
    shutil.copy(tmp_path / "catalog.db", tmp_path / "older.db")
    with Lake.of(feed) as lake:
        cheap.publish(lake, newest_cut(lake.catalog, lake.store, "shop"), 1)
    shutil.copy(tmp_path / "older.db", tmp_path / "catalog.db")
    with (
        Lake.of(feed) as lake,
        pytest.raises(ConfigError, match=r"cut 2 of feed shop is missing from the catalog, .* records that it was published"),
    ):
        recover(lake.catalog, lake.store, "shop")


def test_status_of_a_mistyped_catalog_says_so(tmp_path: Path) -> None:
    made(with_places(tmp_path))
    folder = tmp_path / "schemas" / "shop"
    folder.mkdir(parents=True)
    (folder / "feed.toml").write_text(
        f'protocol = "open"\ntopics = ["t"]\npartitions = 1\n[source]\nuri = "{tmp_path}/archive"\nlayout = "aiven-jsonl"\n'
        f'[lake]\nuri = "{tmp_path}/lake"\ncatalog = "jdbc:sqlite:{tmp_path}/catlog.db"\n'
    )
    done = call("status", "--feed", "shop", "--schemas", tmp_path / "schemas")
    assert (done.code, done.out) == (2, "")
    assert f"WRONG_CATALOG: the lake {tmp_path}/lake belongs to jdbc:sqlite:{tmp_path}/catalog.db" in done.err
    assert not (tmp_path / "catlog.db").exists()


# the namespace


def renamed(folder: Path) -> Feed:
    return lakes.feed(folder, lake=with_places(folder).lake.model_copy(update={"namespace": "{feed}_{database}"}))


def test_a_changed_namespace_is_refused_before_anything_is_staged(tmp_path: Path) -> None:
    made(with_places(tmp_path))
    with Lake.of(renamed(tmp_path)) as lake:
        for _ in range(2):
            with pytest.raises(ConfigError) as error, lake.hold("order"):
                pass
        assert next_seq(lake.store, "shop", 1) == 2
    assert (error.value.code, error.value.exit_code) == ("NAMESPACE_CHANGED", 2)
    assert "lake.namespace: cut 1 is published with d.k in namespace 'd'; '{feed}_{database}' would make it 'shop_d'" in error.value.message
    with Lake.of(with_places(tmp_path)) as lake, lake.hold("order"):
        pass


def test_a_changed_namespace_is_refused_while_a_cut_waits_to_be_published(tmp_path: Path) -> None:
    with Lake.of(with_places(tmp_path)) as lake, pytest.MonkeyPatch.context() as patch:
        kill_at(patch, "record", 0)
        with pytest.raises(Killed):
            cheap.publish(lake, None, 0)
    with Lake.of(renamed(tmp_path)) as lake:
        waits = r"cut 1 is being published \(publish/shop/00000001.json\) with d.k in namespace 'd'"
        with pytest.raises(ConfigError, match=waits) as error, lake.hold("order"):
            pass
        assert error.value.remedy == "restore lake.namespace; or abandon it: `tidelake abandon --feed shop`"
        assert abandon(lake) is not None
        with lake.hold("order"):
            pass
