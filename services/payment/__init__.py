"""Payments: one stream each, holding what we want of the provider and what it has answered."""
