"""Bytes, TLS, HTTP/1.1 and HTTP/2 of the fakes. Knows nothing of models or shops."""
