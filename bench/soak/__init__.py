"""Connect, stream, cut, for a long time; then everything must be as it was: `python -m bench.soak`."""
