"""Run the shop: start, stop, look after and fill it."""
