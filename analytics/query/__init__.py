"""Reads the lake without Spark: SQL, time travel, freshness and delays."""
