"""Families of protocols: each recognises its protocols in one message."""
