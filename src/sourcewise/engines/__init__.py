"""Where the sources are: each engine answers the same few questions (`core/engine.py`)."""
