"""feed.toml and what it names: settings as checked models, names, and where a feed's objects stand in the lake."""
