"""The kernel: event sourcing for any service."""
