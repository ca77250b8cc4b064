"""Families of protocols, and what one message shows of its own."""
