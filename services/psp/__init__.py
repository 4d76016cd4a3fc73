"""The payment provider, simulated: a process of its own, outside the shop, with a true ledger of the money it moved."""
