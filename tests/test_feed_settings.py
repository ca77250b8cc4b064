"""What a feed's settings mean, beyond being there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_feed import PLAIN, loaded, refused
from tidelake.feed import INSPECT_ONLY


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
    assert loaded(tmp_path, PLAIN + COLUMNS).zero_date_of(tables, columns) == wanted


@pytest.mark.parametrize("protocol", sorted(INSPECT_ONLY))
def test_a_protocol_without_stages_is_refused(tmp_path: Path, protocol: str) -> None:
    said = f"protocol: decodes in `tidelake inspect`; feeds of it are not in this version (found '{protocol}')"
    assert refused(tmp_path, PLAIN.replace('"open"', f'"{protocol}"', 1)) == said


@pytest.mark.parametrize(("text", "mebibytes"), [("", 256), ('in_flight = "64 MB"', 64), ('in_flight = "2GB"', 2048)])
def test_the_bytes_in_flight_of_landing_are_given_with_their_unit(tmp_path: Path, text: str, mebibytes: int) -> None:
    assert loaded(tmp_path, PLAIN.replace("[lake]", f"{text}\n[lake]")).source.in_flight == mebibytes << 20
