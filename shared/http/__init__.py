"""The HTTP edge: problems, tokens, preconditions, idempotency. What a request is, before it is a command."""
