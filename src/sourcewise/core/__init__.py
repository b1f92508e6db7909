"""Mathematics: arrays in, small frozen dataclasses out; no scikit-learn classes, no I/O."""
