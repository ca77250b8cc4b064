"""What a feed's settings mean, beyond being there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.feed_texts import PLAIN, loaded, refused
from tidelake.config.feed import UNDATED
from tidelake.config.policy import ValueRules


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "+08:00", "-03:30", "Europe/Berlin"])
def test_zones_are_names_or_offsets(tmp_path: Path, zone: str) -> None:
    assert loaded(tmp_path, f'time_zone = "{zone}"\n{PLAIN}').time_zone == zone


def test_avro_without_resolved_ts_in_its_messages_needs_checkpoints(tmp_path: Path) -> None:
    avro = PLAIN.replace('"open"', '"avro"') + '[avro]\nschemas = "x.json"\n'
    assert refused(tmp_path, avro) == 'the file: Avro messages carry no resolved ts: set [watermark] from = "checkpoints"'
    assert loaded(tmp_path, avro + "[options]\navro_enable_watermark = true\n").protocol == "avro"


COLUMNS = '[policy]\nzero_date = "reject"\n[columns."shop.Orders".Paid_At]\nzero_date = "string"\n[columns."shop.orders".other]\n'


@pytest.mark.parametrize(
    ("tables", "columns", "wanted"),
    [
        (["shop.orders"], ["paid_at"], "string"),
        (["SHOP.ORDERS"], ["PAID_AT"], "string"),
        (["shop.orders", "shop.purchases"], ["settled_at", "paid_at"], "string"),
        (["shop.purchases"], ["paid_at"], "reject"),
        (["shop.orders"], ["settled_at"], "reject"),
        (["shop.orders"], ["other"], "reject"),
        ([], [], "reject"),
    ],
)
def test_a_column_s_policy_stays_with_it_under_any_of_its_names(tmp_path: Path, tables: list[str], columns: list[str], wanted: str) -> None:
    assert loaded(tmp_path, PLAIN + COLUMNS).rules_of(tables, columns).zero_date == wanted


def test_a_column_s_rules_are_the_feed_s_where_it_says_none(tmp_path: Path) -> None:
    of_feed = '[policy]\ninvalid_values = "null"\nwide_decimal = "decimal(38,10)"\n'
    of_columns = '[columns."a.t".x]\nwide_decimal = "string"\n[columns."a.t".y]\ninvalid_values = "string"\n'
    feed = loaded(tmp_path, PLAIN + of_feed + of_columns)
    assert feed.rules_of(["a.t"], ["x"]) == ValueRules(invalid_values="null")
    assert feed.rules_of(["a.t"], ["y"]) == ValueRules(invalid_values="string", wide_decimal="decimal(38,10)")
    assert feed.rules_of(["a.t"], ["z"]) == ValueRules(invalid_values="null", wide_decimal="decimal(38,10)")


@pytest.mark.parametrize("text", ['"decimal(38,39)"', '"decimal(40,2)"', '"decimal"', "38"])
def test_a_wide_decimal_has_38_digits_or_is_text(tmp_path: Path, text: str) -> None:
    found = text.replace('"', "'")
    said = f'policy.wide_decimal: "string" or "decimal(38,s)" with s from 0 to 38 (found {found})'
    assert refused(tmp_path, f"{PLAIN}[policy]\nwide_decimal = {text}\n") == said


def test_only_a_column_may_become_text_for_what_does_not_fit(tmp_path: Path) -> None:
    said = "policy.invalid_values: Input should be 'null' or 'reject' (found 'string')"
    assert refused(tmp_path, f'{PLAIN}[policy]\ninvalid_values = "string"\n') == said


OFFSETS = '[watermark]\nfrom = "offsets"\n'


@pytest.mark.parametrize("protocol", sorted(UNDATED))
def test_a_protocol_without_commit_ts_is_ordered_by_offsets_or_not_at_all(tmp_path: Path, protocol: str) -> None:
    plain = PLAIN.replace('"open"', f'"{protocol}"', 1)
    said = f'the file: protocol {protocol}: its rows carry no commit ts: set [watermark] from = "offsets" (docs/offsets.md)'
    assert refused(tmp_path, plain) == said
    feed = loaded(tmp_path, plain + OFFSETS)
    assert (feed.by_offsets, feed.by_arrival, feed.closed_by, feed.watermark.one_partition_per) == (True, True, "quiet", "table")


def test_what_comes_from_one_partition_is_said_of_offsets_only(tmp_path: Path) -> None:
    assert loaded(tmp_path, f'{PLAIN}{OFFSETS}one_partition_per = "key"\n').watermark.one_partition_per == "key"
    assert (
        refused(tmp_path, f'{PLAIN}[watermark]\none_partition_per = "key"\n') == 'watermark: one_partition_per goes with from = "offsets"'
    )
    said = "the file: policy.on_finding: GAP should be 'block' or 'warn', as the closed hour advances past it; found 'ignore'"
    assert refused(tmp_path, f'{PLAIN}{OFFSETS}[policy]\non_finding = {{ GAP = "ignore" }}\n') == said


@pytest.mark.parametrize(("text", "mebibytes"), [("", 256), ('in_flight = "64 MB"', 64), ('in_flight = "2GB"', 2048)])
def test_the_bytes_in_flight_of_landing_are_given_with_their_unit(tmp_path: Path, text: str, mebibytes: int) -> None:
    assert loaded(tmp_path, PLAIN.replace("[lake]", f"{text}\n[lake]")).source.in_flight == mebibytes << 20
