"""Arrow functions that order, compact and queries share: cells to values, conversions between types, the fold."""
