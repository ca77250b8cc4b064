"""Compact: changelogs folded into snapshot tables."""
