"""Marts: the gold tables, one module each."""
