"""Benchmarks: every figure is a ratio of two timings taken in one run on one machine."""
