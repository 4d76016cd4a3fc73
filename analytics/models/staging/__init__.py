"""Staging models: silver events in a few narrow columns."""
