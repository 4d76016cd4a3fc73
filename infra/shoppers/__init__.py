"""Simulated shoppers: what they have in mind, how they go about it, and whether the shop's books agree with them."""
