"""Gateway: the socket edge: consumers and authentication. No models."""
