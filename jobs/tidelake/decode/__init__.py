"""Decode: landed messages become rows of the events table."""
