"""What archive layouts share: the shape of a layout, file codecs, and readers of rows, lines and containers."""
