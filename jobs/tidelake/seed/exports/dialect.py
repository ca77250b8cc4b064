"""Text format of an export: Dumpling's options, with Dumpling's names."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from tidelake.errors import ConfigError


class Dialect(BaseModel):
    r"""Dumpling's `--csv-separator`, `--csv-delimiter`, `--csv-null-value`, `--escape-backslash` and `--no-header`.

    Lines end in \n or \r\n; both are read. Binary columns are raw bytes. The output of `--csv-output-dialect` (hex digits, base64) is made
    of bytes as well, so it cannot be recognised.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    separator: str = ","
    delimiter: str = '"'
    null: str = r"\N"
    escape: bool = True
    header: bool = True

    @field_validator("separator")
    @classmethod
    def _parts_fields(cls, separator: str) -> str:
        if not separator or set(separator) & set('\r\n\\"') or not separator.isascii():
            raise ValueError("ASCII characters other than line ends, quotes and backslash")
        return separator

    @field_validator("delimiter")
    @classmethod
    def _is_one_character(cls, delimiter: str) -> str:
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in "\r\n\\":
            raise ValueError(
                "one ASCII character: without quotes NULL and text look the same, and of several characters only the first is escaped"
            )
        return delimiter


PLAIN = Dialect()


def dialect(**said: object) -> Dialect:
    """Return a dialect. Raises ConfigError for options that cannot be read without ambiguity."""
    try:
        return Dialect.model_validate(said)
    except ValidationError as e:
        first = e.errors()[0]
        raise ConfigError(f"--csv-{first['loc'][0]}: found {first['input']!r}", remedy=f"allowed: {first['msg']}") from None
