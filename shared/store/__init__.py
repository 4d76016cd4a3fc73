"""Everything in PostgreSQL: the event store, states, outbox rows, read models and migrations."""
