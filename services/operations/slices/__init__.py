"""Takes parts of topics by time and by condition."""
