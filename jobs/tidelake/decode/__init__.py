"""The decode stage: turns landed messages into rows of the events table."""
