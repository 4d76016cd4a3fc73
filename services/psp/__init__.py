"""The payment provider, simulated: a process of its own, outside the shop, honest about the money it moves."""
