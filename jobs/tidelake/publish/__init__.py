"""Publishing: makes a cut visible in one step; recovery, abandon and rollback."""
