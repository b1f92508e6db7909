"""What cannot be collected where an extra is not installed."""

from importlib.util import find_spec

# Its examples run torch; `make test` installs it.
collect_ignore = [] if find_spec("torch") else ["src/sourcewise/images/extractor.py"]
