"""Providers: what each kind of model really sends, turned into the engine's model events."""
