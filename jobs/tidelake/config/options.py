"""The changefeed's sink options that change message bytes (docs/reference/protocols.md 1.4). Names are TiCDC's, with underscores."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Compression = Literal["none", "snappy", "lz4"]


class SinkOptions(BaseModel):
    """Sink options of one changefeed, with TiCDC's defaults. Used by feed.toml `[options]` and `inspect --set`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enable_tidb_extension: bool = False
    content_compatible: bool = False
    official_canal: bool = False
    only_output_updated_columns: bool = False
    delete_only_output_handle_key_columns: bool = False
    open_output_old_value: bool = True
    max_batch_size: int = 16
    max_message_bytes: int = 10 << 20
    large_message_handle_option: Literal["none", "handle-key-only", "claim-check"] = "none"
    large_message_handle_compression: Compression = "none"
    claim_check_raw_value: bool = False
    avro_decimal_handling_mode: Literal["precise", "string"] = "precise"
    avro_bigint_unsigned_handling_mode: Literal["long", "string"] = "long"
    avro_enable_watermark: bool = False
    enable_row_checksum: bool = False
    debezium_disable_schema: bool = False
    debezium_output_old_value: bool = True
    output_xoffset: bool = False  # Maxwell's own
    delimiter: str = Field(default=",", min_length=1)  # this and the following: the storage sink's CSV
    quote: str = Field(default='"', max_length=1)
    null: str = "\\N"
    terminator: str = "\r\n"
    include_commit_ts: bool = False
    binary_encoding_method: Literal["base64", "hex"] = "base64"
    output_old_value: bool = False
    output_handle_key: bool = False
    output_field_header: bool = False
