"""The gold tables, each a function of silver."""
