"""Tests of the documentation: links resolve, named things exist, and commands of README, tutorial and http.md work."""
