"""The API of the demo shop Lantern: customers and their orders over HTTP, with a bearer key.

`handle.Shop` runs it in-process; `python -m tests.fakes.shop` as a process of its own.
"""
