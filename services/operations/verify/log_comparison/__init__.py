"""Compares the event store of a service with its topic, byte for byte."""
