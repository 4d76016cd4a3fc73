"""Look back: the events, states and causes of the past."""
