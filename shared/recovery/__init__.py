"""Recovery: refilling a store, republishing a topic, dead letters and their retry, and crash points for tests."""
