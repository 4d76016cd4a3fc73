"""Carts: one stream each, from the first item to the till."""
