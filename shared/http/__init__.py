"""The HTTP edge: everything about a request before it is a command, and about its answer after."""
