"""What the method gains for boosting and forests, on real data."""
