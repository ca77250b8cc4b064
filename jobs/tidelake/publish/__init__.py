"""Publish: a cut becomes visible in one step; recovery, abandon and rollback."""
