"""Validate: rules judged on what order staged, and the reports about it."""
