"""Stores: how the two stores are reached: database executor, Redis client, ids, sealed fields. No domain."""
