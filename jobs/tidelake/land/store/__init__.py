"""The landed data: canonical objects, the manifest, and the event store that holds messages until they are durable."""
