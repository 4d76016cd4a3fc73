"""The ground the lake runs on: the Spark session, its storage and caches, and the connection to Kafka."""
