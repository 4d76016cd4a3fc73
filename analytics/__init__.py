"""The lake: Kafka to bronze, silver and gold with Spark and Delta, and SQL on it without Spark."""
