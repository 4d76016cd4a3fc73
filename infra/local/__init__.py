"""The local stack: Kafka, the registry, PostgreSQL and the shop as child processes of this machine."""
