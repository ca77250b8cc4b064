"""Hostile messages by the million: whatever the bytes, events or one DecodeError, the same by both paths, in bounded time and memory.

`python -m tests.fuzz` (`make fuzz`) runs it; tests/fuzz/test_fuzz.py runs a small share of it in every CI.
"""
