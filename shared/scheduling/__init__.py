"""Deadlines and errands: what happens to streams without a request."""
