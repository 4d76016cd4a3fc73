"""The contract: topics and schemas."""
