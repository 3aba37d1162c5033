"""A model server that speaks OpenAI's Chat Completions over TLS, and misbehaves on demand.

`handle.Upstream` runs it in-process; `python -m tests.fakes.upstream` as a process of its own.
"""
