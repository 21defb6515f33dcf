"""Runs of equal keys, combined pairwise."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semiring.algorithms.csr import combine_runs

Values = tuple[np.ndarray[Any, Any], ...]


@given(st.lists(st.integers(0, 3), max_size=40))
def test_what_came_earlier_comes_first(keys: list[int]) -> None:
    """Concatenation does not commute, so it shows the order."""
    keys.sort()
    words = np.empty(len(keys), dtype=object)
    words[:] = [chr(ord("a") + i) for i in range(len(keys))]
    calls = 0

    def joined(x: Values, y: Values) -> Values:
        nonlocal calls
        calls += 1
        return x[0] + y[0], np.minimum(x[1], y[1])

    given_keys = np.array(keys, dtype=np.intp)
    found, (texts, least) = combine_runs(given_keys, (words, np.arange(len(keys))), joined)
    expected = {k: "".join(w for w, own in zip(words, keys, strict=True) if own == k) for k in keys}
    assert found.tolist() == list(expected)
    assert texts.tolist() == list(expected.values())
    assert least.tolist() == [keys.index(k) for k in expected]
    assert given_keys.tolist() == keys
    longest = max(map(keys.count, keys), default=0)
    assert calls == max(longest - 1, 0).bit_length()


def test_wide_keys_and_several_entries_a_key() -> None:
    keys = np.array([5, 5, 5, 2**62, 2**62])
    found, (sums,) = combine_runs(keys, (np.array([1, 10, 100, 1000, 10000]),), lambda x, y: (x[0] + y[0],))
    assert found.tolist() == [5, 2**62]
    assert sums.tolist() == [111, 11000]
