"""Compiled readers of the containers that archives wrap messages in."""
