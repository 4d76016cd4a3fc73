"""Shared by the benchmarks: stacks, services, clients and event histories to measure with."""
