"""What people are told about a feed: causes found in the lake, and who has heard of them (docs/how-to/notifications.md)."""
