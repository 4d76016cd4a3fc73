"""The Java that runs Kafka, the registry and Spark: finding it, and installing it."""
