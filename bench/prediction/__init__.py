"""How well the customer's next request is guessed, beside n-grams of acts."""
