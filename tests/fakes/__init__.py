"""Stand-ins for what is not ours, over real sockets: the model's server and the shop's API.

They can stall, cut and garble. Nothing in here imports product code, so a mistake cannot agree with itself.
"""
