"""The runtime of the lake: the Spark session, its storage and caches, and the connection to Kafka."""
