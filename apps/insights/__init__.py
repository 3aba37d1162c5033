"""Insights: what was measured of turns, read by agents and in the admin, and how long it is kept."""
