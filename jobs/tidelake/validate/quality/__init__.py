"""Data quality: expectations, their verdict on a window, and the report for people."""
