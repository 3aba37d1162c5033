"""What web processes are to each other: what they say and hear, and who listens where.

Nothing that is said here is relied on: each listener has a slower way to learn the same.
"""
