"""The order service: one stream per order, which is also the saga from checkout to confirmation or cancellation."""
