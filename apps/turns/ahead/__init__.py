"""What is begun before a question asks for it: searches, answers, prompts, facts.

Nothing here has an effect of its own, and every turn goes on without it.
"""
