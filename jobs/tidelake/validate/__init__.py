"""The validate stage: checks what order staged, and reports about it."""
