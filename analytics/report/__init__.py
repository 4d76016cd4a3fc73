"""The page on the shop that `till lake report` writes, and the ten questions."""
