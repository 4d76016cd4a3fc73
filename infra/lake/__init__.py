"""Connects the command line and `till verify` to the lake in `analytics/`."""
