"""The lake for those who read it: SQL, time travel and freshness, without Spark."""
