"""Llm: the warm line to model endpoints, and what each provider really sends."""
