"""Asks what would have happened under other rules."""
