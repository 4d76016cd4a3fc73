"""Orders: one stream each, which is also the memory of the process from checkout to confirmed, or undone."""
