"""Turns: the shell round the engine: supervisor, runner, fanout, preload."""
