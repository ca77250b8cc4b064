"""What `tidelake doctor` checks: this host, the feeds' files, and every place that the feeds name."""
