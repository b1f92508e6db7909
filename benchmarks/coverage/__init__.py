"""Whether the intervals of the report hold what they promise; ``python -m benchmarks.coverage``."""
