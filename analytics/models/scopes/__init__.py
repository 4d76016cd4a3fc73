"""Scopes: which carts, orders and customers new events affect, and where the older events of these are."""
