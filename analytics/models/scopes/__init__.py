"""Scopes: what new events affect, and where its older events are."""
