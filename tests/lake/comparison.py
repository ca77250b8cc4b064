"""A lake beside the upstream database that its history tells of."""

from __future__ import annotations

import hmac
from collections import Counter

import pytest

from tests.lake.histories import publish, rows_of
from tests.lake.invented import History
from tests.lake.upstream import Bag, Upstream
from tidelake.errors import ConfigError, OrderError
from tidelake.lake.cut import Cut
from tidelake.lake.opened import Lake
from tidelake.query.scd2 import scd2_frame


def published(lake: Lake, hour: str) -> Cut | None:
    """The hour's cut, None where its end does not move the resolved ts."""
    try:
        return publish(lake, hour)
    except OrderError as e:
        if e.code not in ("NO_WATERMARK", "STANDS_STILL"):
            raise
        return None


def compare(lake: Lake, history: History, ts: int) -> None:
    """All tables at a TSO; a name that none bears then is refused."""
    wanted = history.upstream.at(ts)
    for name in ("k", "j", "m"):
        if name in wanted:
            assert rows_of(lake, f"d.{name}", ts) == _masked(lake, wanted[name]), f"d.{name} at {ts} of {history}"
        else:
            with pytest.raises(ConfigError, match=f"d.{name}"):
                rows_of(lake, f"d.{name}", ts)


def compare_versions(lake: Lake, upstream: Upstream, name: str) -> None:
    """The versions of rows that are valid at each commit, and just before it, are the table as of then, whatever its name was."""
    if name not in upstream.tables:
        return
    life = upstream.first(upstream.tables[name].life)
    versions = [r.asDict() for r in scd2_frame(lake, f"d.{name}", None, lake.spark)[0].collect()]
    late = {ts for ts, e in upstream.moves.items() if e.late}  # its rows may move one tick later
    for ts in {t - n for t in upstream.truth for n in (0, 1)} - late:
        valid = [v for v in versions if v["_valid_from_ts"] <= ts and (v["_current"] or ts < v["_valid_to_ts"])]
        found, wanted = Counter((("id", str(v["id"])), ("v", v["v"])) for v in valid), _masked(lake, _of_life(upstream, life, ts))
        assert found == wanted, f"d.{name}: versions at {ts}"


def _masked(lake: Lake, rows: Bag) -> Bag:
    """The rows with their v hashed, if the feed masks it."""
    if not lake.feed.columns:
        return rows
    key = str(lake.feed.policy.mask_key).encode()
    return Counter({tuple((c, hmac.digest(key, v.encode(), "sha256").hex() if c == "v" else v) for c, v in r): n for r, n in rows.items()})


def _of_life(upstream: Upstream, life: int, ts: int) -> Bag:
    """The first two columns at a TSO of the table that began with this life."""
    bearing = upstream.lives[max(t for t in upstream.lives if t <= ts)]
    name = next((n for n, other in bearing.items() if upstream.first(other) == life), None)
    return Counter(r[:2] for r in upstream.at(ts)[name].elements()) if name else Counter()
