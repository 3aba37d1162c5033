"""Wire: frames, kinds, limits, close codes, group names. All of it is pure."""
