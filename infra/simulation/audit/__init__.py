"""The audit after a simulation: orders, stock and the provider's ledger must agree."""
