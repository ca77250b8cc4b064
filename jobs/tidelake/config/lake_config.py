"""Where a feed's tables go: [lake] of feed.toml."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from tidelake.config.client_settings import flat_settings
from tidelake.config.source import VARIABLE, check_storage

_NAMESPACE = re.compile(r"([A-Za-z0-9_-]|\{feed\}|\{database\})+")
# Properties of REST catalogs that pyiceberg and Iceberg's Java client know by the same names.
_REST = frozenset(
    """token credential oauth2-server-uri scope audience resource warehouse
    rest.sigv4-enabled rest.signing-name rest.signing-region""".split()
)


def _known(name: str) -> None:
    if name not in _REST:
        raise ValueError(f"{name} cannot be set; allowed: {', '.join(sorted(_REST))}")


def _rest(value: Any) -> Any:
    flat = flat_settings(value, _known)
    if not isinstance(flat, dict):
        return flat
    return {name: str(item).lower() if isinstance(item, bool) else str(item) for name, item in flat.items()}


class LakeConfig(BaseModel):
    """Location of the tables.

    catalog: jdbc:sqlite:…, jdbc:postgresql:…, glue://…, or a REST URL; rest: properties of a REST catalog's client, by Iceberg's names;
    namespace: may contain {feed} and {database}.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    uri: str = Field(repr=False)
    catalog: str | None = Field(default=None, repr=False)
    rest: Annotated[dict[str, str], BeforeValidator(_rest)] = Field(default={}, repr=False)
    namespace: str = "{database}"

    @field_validator("namespace")
    @classmethod
    def _names_only_what_is_known(cls, namespace: str) -> str:
        if not _NAMESPACE.fullmatch(VARIABLE.sub("x", namespace)):
            raise ValueError("letters, digits, _ and -, {feed} and {database} are allowed")
        return namespace

    @model_validator(mode="after")
    def _is_on_storage_that_is_written(self) -> LakeConfig:
        check_storage(self.uri, "uri")
        return self
