"""Rebuilds a view next to the live one, and swaps the two."""
