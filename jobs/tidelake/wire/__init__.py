"""What the wire formats share: compiled scanning, and the assembly of what it found into EVENT batches."""
