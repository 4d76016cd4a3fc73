"""Incremental view maintenance: gold stays equal to a full recomputation by computing what new events affect."""
