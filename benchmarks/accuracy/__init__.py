"""How near the methods come to a learner that knows which sources are clean, on real data."""
