"""Measure: the benchmarks."""
