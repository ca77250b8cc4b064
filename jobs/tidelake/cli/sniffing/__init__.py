"""What `tidelake sniff` prints and writes: guesses, archives, feed.toml files."""
