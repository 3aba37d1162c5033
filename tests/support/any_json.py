"""Any JSON that a server might send, for readers that must not fall over it."""

from __future__ import annotations

from hypothesis import strategies as st


def any_json(names: list[str], words: list[str] | None = None) -> st.SearchStrategy[object]:
    """Values of any kind. Objects have fields of these `names`; some of the texts are these `words`."""
    scalars: st.SearchStrategy[object] = st.none() | st.booleans() | st.integers() | st.text()
    if words:
        scalars |= st.sampled_from(words)
    fields = st.sampled_from(names)
    return st.recursive(
        scalars, lambda inner: st.lists(inner) | st.dictionaries(fields, inner), max_leaves=12
    )
