"""Check and repair: verify, rebuild, replay, dead letters, erasure."""
