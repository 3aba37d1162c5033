"""The whole path of a turn, three ways in one run: what a team would have written, twice, and this product.

`python -m bench.turn` starts everything it needs on this machine and writes bench/results/turn.{md,json,svg}.
"""
