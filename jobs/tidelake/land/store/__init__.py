"""What is landed: canonical objects, the manifest, and the event store that holds messages until they are durable."""
