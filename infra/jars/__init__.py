"""The Java parts: which files they are (the lock), how they are downloaded, checked and kept."""
