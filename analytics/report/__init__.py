"""The HTML report that `till lake report` writes, and ten questions of an analyst."""
