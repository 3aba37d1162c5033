"""Wire: frames, kinds, limits, close codes, group names. protocol.py is pure."""
