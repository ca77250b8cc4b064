"""A table of the lake compared with its source by sums over ranges of keys, as sync-diff-inspector does it. docs/verify.md."""
