"""Inbox: humans: queue, assignment, presence, handoff."""
