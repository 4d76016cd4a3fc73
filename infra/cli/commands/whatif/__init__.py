"""Commands that run history under other rules."""
