"""The lake: fill it, keep it fresh, verify it and query it."""
