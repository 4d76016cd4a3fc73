"""Simulated shoppers: what they plan, and how they carry it out over the shop API."""
