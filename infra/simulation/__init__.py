"""Simulated shoppers, and the audit of the shop after them."""
