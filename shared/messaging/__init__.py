"""Messaging: the transactional outbox's relay, idempotent consumers, reactions, and everything that speaks to Kafka."""
