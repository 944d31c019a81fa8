"""What runs batches, and the queues in front of it."""
