"""The parts of `bench.answer_cache`."""
