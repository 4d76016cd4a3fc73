"""Tests of the HTTP API of a real shop, as shoppers, operators and attackers use it."""
