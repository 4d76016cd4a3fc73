"""Intermediate models: all events of one cart or order in one row, read by many tables."""
