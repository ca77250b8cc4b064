"""A small share of the fuzz run in every CI: the same machinery with a fixed seed, Hypothesis, and compiled code that checks its bounds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checkout import CHECKOUT
from tests.fuzz import plan
from tests.fuzz.corpus import groups
from tests.fuzz.judge import judge
from tests.fuzz.tally import Tally
from tests.protocols.both_paths import Message
from tests.searches import examples
from tidelake.protocols import protocol_names

SEED = int(os.environ.get("TIDELAKE_FUZZ_SEED", "20260101"))
COUNT = 2_500  # of each protocol
PROTOCOLS = protocol_names()
COMPILED = [p for p in PROTOCOLS if p not in ("debezium", "maxwell", "csv")]  # these have no compiled scan


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_broken_messages_give_events_or_a_decode_error_and_both_paths_agree(protocol: str) -> None:
    print(f"TIDELAKE_FUZZ_SEED={SEED}")  # noqa: T201  shown when it fails
    tally = Tally()
    for task in plan.tasks([protocol], COUNT, SEED, batch=250, giant_mb=0):
        tally.add(plan.run(task))
    assert tally.faults == []
    assert COUNT <= tally.messages < COUNT + 10
    assert tally.events > 100
    assert len(tally.rejected) >= 5


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, int, Message]:
    """A good message with any bytes in the place of any others, and the number of its group."""
    protocol = draw(st.sampled_from(PROTOCOLS))
    number = draw(st.integers(0, len(groups(protocol)) - 1))
    sides = [*draw(st.sampled_from(groups(protocol)[number].messages))]
    i = draw(st.integers(0, 1))
    data = sides[i] or b""
    start = draw(st.integers(0, len(data)))
    sides[i] = data[:start] + draw(st.binary(max_size=12)) + data[start + draw(st.integers(0, 12)) :]
    return protocol, number, (sides[0], sides[1])


@given(edited())
@settings(max_examples=examples(600))
def test_any_bytes_in_the_place_of_any_others_keep_the_promises(found: tuple[str, int, Message]) -> None:
    protocol, number, message = found
    group, tally = groups(protocol)[number], Tally()
    judge(group, group.context(), [message], tally)
    assert tally.faults == []


@pytest.mark.long
def test_compiled_code_never_leaves_its_arrays(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """numba tests every index, in processes of their own. Batches are small, so that many messages end where an array does. Nearly all of
    the time goes into compiling, once for a version of the sources."""
    cache = getattr(request.config, "cache", None)  # none where pytest keeps nothing
    kept = Path(cache.mkdir("bounds")) if cache is not None else tmp_path
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(kept)}
    flags = ["--messages", "20000", "--seed", str(SEED), "--batch", "8", "--giants", "0", "--processes", "2"]
    flags += [f"--protocol={p}" for p in COMPILED]
    command = [sys.executable, "-m", "tests.fuzz", *flags]
    done = subprocess.run(command, env=environment, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    for old in sorted(kept.glob("kernels-*"), key=lambda path: path.stat().st_mtime)[:-1]:
        shutil.rmtree(old)
    assert done.returncode == 0, done.stdout + done.stderr
    tried = re.search(r"^([\d,]+) messages in", done.stdout, re.MULTILINE)
    assert tried
    assert int(tried[1].replace(",", "")) >= 20_000
    assert list(kept.glob("kernels-*/*/craft_scan.*.nbc"))
