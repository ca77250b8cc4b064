"""Configuration: feed.toml as validated models, table names, and the feed's paths in the lake."""
