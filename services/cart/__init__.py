"""The cart service: one stream per cart, from opening to checkout or abandonment."""
