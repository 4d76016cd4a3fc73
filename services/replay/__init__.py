"""Looks back: what was, what changed it, and why. Reads the rolls of all services; decides and writes nothing."""
