"""Telemetry: every metric with its unit, and the stages of a turn."""
