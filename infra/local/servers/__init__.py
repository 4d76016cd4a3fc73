"""The servers of the local stack: how each is prepared, started and asked whether it works."""
