"""What tests share: real processes, fresh databases, and a client that speaks the wire."""
