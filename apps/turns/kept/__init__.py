"""What a process keeps from one turn to the next, with copies for the others: conversations as prompts, and answers.

No truth lives here alone: all of it can be made anew from the database.
"""
