"""JSON messages: scanned and typed column by column."""
