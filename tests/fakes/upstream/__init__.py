"""A model server that speaks Chat Completions and the Responses API with its WebSocket mode, and misbehaves on demand.

`handle.Upstream` runs it in-process; `python -m tests.fakes.upstream` as a process of its own. Both obey `Control`:

    def test_a_stalled_stream_is_given_up(upstream):              # fixture: TLS, HTTP/1.1 and HTTP/2, no delays
        upstream.next(Plan(script=Text("It is on its way.")))     # the next request, and only that
        upstream.always(FAILING["stall_mid_stream"])              # every other one
        ...                                                       # a client of upstream.base_url, upstream.ca_file
        upstream.wait("aborts", 1)                                # `await upstream.until(...)` on a loop
        assert upstream.requests()[-1].tokens_sent == 2
"""
