"""Looks back: the events of a stream, what they changed and why, and the whole shop at a moment."""
