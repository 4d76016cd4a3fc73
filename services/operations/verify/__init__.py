"""Verifies the invariants of a shop from its stores, topics, ledger and lake."""
