"""The payment service: one stream per payment, with what is requested of the provider and what it answered."""
