"""The shop over HTTP, as shoppers, operators and those who mean no good see it."""
