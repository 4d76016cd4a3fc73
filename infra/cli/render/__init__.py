"""Shared by all commands: prints tables, values, moments, progress and errors, and parses moments and streams."""
