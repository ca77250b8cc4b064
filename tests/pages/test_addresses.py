"""Addresses: which paths are pages, and links between them."""

from __future__ import annotations

import pytest

from tidelake.config.table_name import FILE_BYTES
from tidelake.pages.addresses import Address, parse_path, table_stem

HOUR = "2026-01-05T10"


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("", Address()),
        ("index.html", Address()),
        ("shop/", Address(feed="shop")),
        ("shop/index.html", Address(feed="shop")),
        ("shop/2026-01.html", Address(feed="shop", month="2026-01")),
        (f"shop/{HOUR}", Address(feed="shop", hour=HOUR)),
        (f"shop/{HOUR}.html", Address(feed="shop", hour=HOUR)),
        ("shop/tables/a%2Eb.orders.html", Address(feed="shop", table="a%2Eb.orders")),
    ],
)
def test_a_path_is_a_page_with_or_without_html(path: str, address: Address) -> None:
    assert parse_path(path) == address


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../index.html",
        "shop",  # its relative links would lead elsewhere
        "shop/..",
        "shop/../../etc/passwd",
        "shop//2026-01.html",
        "/shop/index.html",
        "Shop/index.html",
        "shop\x00/index.html",
        "shop/2026-13.html",
        "shop/0000-01.html",
        "shop/2026-01-05T1.html",
        "shop/tables/",
        "shop/tables/a/b.html",
        "shop/tables/../index.html",
        "shop/secret.txt",
    ],
)
def test_other_paths_are_no_pages(path: str) -> None:
    assert parse_path(path) is None


@pytest.mark.parametrize(
    ("here", "to", "link"),
    [
        (Address(), Address(feed="shop"), "shop/index.html"),
        (Address(feed="shop"), Address(), "../index.html"),
        (Address(feed="shop"), Address(feed="shop", hour=HOUR), f"{HOUR}.html"),
        (Address(feed="shop", hour=HOUR), Address(feed="shop", table="a%2Eb.c"), "tables/a%252Eb.c.html"),
        (Address(feed="shop", table="d.k"), Address(feed="shop"), "../index.html"),
        (Address(feed="shop", table="d.k"), Address(), "../../index.html"),
        (Address(feed="shop", table="d.k"), Address(feed="shop", month="2026-01"), "../2026-01.html"),
    ],
)
def test_links_are_relative(here: Address, to: Address, link: str) -> None:
    assert here.link(to) == link


def test_the_file_of_a_table_is_one_that_file_systems_take_and_no_two_tables_share_it() -> None:
    assert table_stem("shopdb.orders") == "shopdb.orders"
    assert table_stem("`a/b`.`..`") == "a%2Fb.%2E%2E"
    long = [f"`{'数' * 60}`.`{'据' * 60}{n}`" for n in range(2)]
    stems = [table_stem(name) for name in long]
    assert all(len((stem + ".html").encode()) <= FILE_BYTES for stem in stems)
    assert len(set(stems)) == 2
