"""Breaks everything on a seeded schedule while customers and agents talk, and judges by what they sent and saw."""
