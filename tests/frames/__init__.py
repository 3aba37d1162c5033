"""Golden frames, read by pytest and by the JavaScript tests, so that the two mirrors cannot drift.

`python -m tests.frames` writes the files anew from `examples.py`; review the difference before committing it.
"""
