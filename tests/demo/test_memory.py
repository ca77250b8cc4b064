from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tidelake.demo.memory import peaks

HUNGRY = """
import sys
x = bytearray(int(sys.argv[1]))
x[::4096] = b"x" * len(x[::4096])
del x
print("full", flush=True)
sys.stdin.read()
"""


SLACK = 1 << 20  # the kernel counts a process's pages by thread, and adds up now and then


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux says what a process used")
def test_the_largest_process_of_each_program_counts_with_what_it_had_at_most() -> None:
    before = peaks()["python"]
    wanted = before + (100 << 20)
    command = [sys.executable, "-c", HUNGRY, str(wanted)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"full\n"
        assert peaks()["python"] > wanted
        child.communicate(b"")
    assert before - SLACK <= peaks()["python"] < wanted
