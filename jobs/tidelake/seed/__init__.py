"""Seed: a full export becomes a feed's first cut."""
