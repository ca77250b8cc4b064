"""Compares a table with its source by checksums over key ranges, like sync-diff-inspector. docs/verify.md."""
