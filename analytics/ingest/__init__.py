"""Kafka to bronze, silver and quarantine: one streaming query, each message exactly once."""
