"""The contract between services: topics, Avro schemas and upcasters."""
