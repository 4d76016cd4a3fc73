"""The shop: its services, the process that runs them together, and the tools and systems around them."""
