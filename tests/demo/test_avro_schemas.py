"""Our Avro schemas are, text for text, those that TiCDC registered for the tables of another workload."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.data_files import data_bytes
from tidelake.demo.messages.encode_avro import AvroEncoder
from tidelake.demo.messages.encode_avro_schemas import key_schema, value_schema
from tidelake.demo.messages.model import SourceColumn, SourceTable
from tidelake.wire.cells.mysql_codes import HANDLE_KEY

TABLES = {
    "orders": (
        "id BIGINT UNSIGNED NOT NULL",
        "customer_id BIGINT NOT NULL",
        "status ENUM('new','paid','sent','done') NOT NULL DEFAULT 'new'",
        "tags SET('gift','express','fragile','bulk','b2b') NULL",
        "total DECIMAL(12,2) NOT NULL",
        "note TEXT NULL",
        "placed TIMESTAMP NOT NULL",
        "discount DECIMAL(5,2) NULL DEFAULT 0",
    ),
    "customers": (
        "id BIGINT NOT NULL",
        "name VARCHAR(100) NOT NULL",
        "email VARCHAR(190) NOT NULL",
        "vip TINYINT(1) NOT NULL DEFAULT 0",
        "balance DECIMAL(12,2) NOT NULL DEFAULT 0",
        "created DATETIME(3) NOT NULL",
        "updated TIMESTAMP(6) NULL",
        "last_login DATETIME NULL",
    ),
    "inventory": (
        "sku_id BIGINT NOT NULL",
        "sku CHAR(12) NOT NULL",
        "attrs JSON NULL",
        "weight DOUBLE NULL",
        "pic BLOB NULL",
        "flags BIT(8) NULL",
        "stock INT NOT NULL",
    ),
}


def shop_table(name: str) -> SourceTable:
    first, *rest = (SourceColumn.parse(line) for line in TABLES[name])
    return SourceTable("shopdb", name, (replace(first, flag=first.flag | HANDLE_KEY), *rest))


def test_key_and_value_schemas_are_ticdc_s_text_for_text() -> None:
    registered = set(json.loads(data_bytes("workloads/shop/avro_schemas.json")).values())
    ours = [json.dumps(make(shop_table(t)), separators=(",", ":")) for t in TABLES for make in (key_schema, value_schema)]
    assert len(ours) == 6
    assert [text for text in ours if text not in registered] == []


def test_members_with_commas_are_escaped_in_the_list_of_allowed_ones() -> None:
    table = SourceTable("d", "t", (SourceColumn.parse("grade ENUM('a','b, c','it''s') NOT NULL"),))
    parameters = value_schema(table)["fields"][0]["type"]["connect.parameters"]
    assert parameters == {"allowed": "a,b\\, c,it's", "tidb_type": "ENUM"}


def test_a_schema_is_registered_once() -> None:
    encoder = AvroEncoder([shop_table("orders"), shop_table("orders"), shop_table("customers")])
    assert list(encoder.schemas) == [1, 2, 3, 4]
