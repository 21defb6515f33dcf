"""Inside weights of sentences, against the sum over all splits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import semiring as sr
from benchmarks.parsing import inside, inside_of_all_symbols


def by_definition(words: Any, rules: Any, roots: Any) -> float:
    """The sum over all trees of the products of their weights, of one sentence; symbols that become words come last."""
    symbols = len(roots)

    def weights(i: int, j: int) -> Any:
        found = np.zeros(rules.shape[1])
        if j == i + 1:
            found[symbols:] = words[i]
            return found
        for k in range(i + 1, j):
            found[:symbols] += np.einsum("abc,b,c->a", rules, weights(i, k), weights(k, j))
        return found

    return float(weights(0, len(words))[:symbols] @ roots)


@pytest.mark.parametrize(("length", "terminals", "symbols"), list(itertools.product((2, 3, 6), (1, 3), (1, 2))))
def test_weights_of_sentences(length: int, terminals: int, symbols: int) -> None:
    rng, every = np.random.default_rng(length), terminals + symbols
    words, rules, roots = rng.random((2, length, terminals)), rng.random((2, symbols, every, every)), rng.random((2, symbols))
    expected = [by_definition(words[s], rules[s], roots[s]) for s in range(2)]
    shared = [by_definition(words[s], rules[0], roots[s]) for s in range(2)]
    for work in (inside, inside_of_all_symbols):
        np.testing.assert_allclose(work(words, rules, roots, sr.PLUS_TIMES), expected)
        np.testing.assert_allclose(work(np.log(words), np.log(rules), np.log(roots), sr.LOG), np.log(expected))
        np.testing.assert_allclose(work(words, rules[0], roots, sr.PLUS_TIMES), shared)
