"""Customers: who is asking: identity, profile sources, orders, their copies in Redis."""
