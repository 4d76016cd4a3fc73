"""Integration tests of the kernel on real servers. `tallies.py` is the service that they use."""
