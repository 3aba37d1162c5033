"""What is put right after a process has died or news was lost: turns, questions, and what sockets have not heard.

It stands above the supervisor, which knows nothing of it.
"""
