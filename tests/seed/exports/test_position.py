"""The TSO of an export, from its metadata and from --ts."""

from __future__ import annotations

import pytest

from tests.seed.exports.dumpling import TS, metadata
from tidelake.errors import ConfigError
from tidelake.seed.exports.position import export_ts

POOL = metadata().replace("STATUS:", "STATUS: /* AFTER CONNECTION POOL ESTABLISHED */")


@pytest.mark.parametrize(
    ("text", "said"),
    [(metadata(), None), (metadata(), TS), (metadata() + POOL, None), (None, TS), (metadata(4567, "mysql-bin.000001"), TS)],
)
def test_metadata_or_the_option_tells_it(text: str | None, said: int | None) -> None:
    assert export_ts(text, said, "metadata") == TS


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        (metadata(), TS + 1, "TSO_DIFFERS"),
        (metadata() + POOL.replace(str(TS), str(TS + 9)), None, "TSO_DIFFERS"),
        (None, None, "NO_TSO"),
        (metadata(4567, "mysql-bin.000001"), None, "NO_TSO"),
        (None, 0, "NO_TSO"),
        (None, 1 << 63, "NO_TSO"),
        (metadata().partition("Finished")[0], TS, "EXPORT_UNFINISHED"),
    ],
)
def test_what_does_not_tell_it_is_refused(text: str | None, said: int | None, code: str) -> None:
    with pytest.raises(ConfigError) as error:
        export_ts(text, said, "metadata")
    assert (error.value.code, error.value.exit_code) == (code, 2)
