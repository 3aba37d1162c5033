"""Conversations: what was said: models, the writer of durable events, outbox, selectors."""
