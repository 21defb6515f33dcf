"""Signatures: options that are written once show in every function that takes them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from semiring.planning.options import ClosureOptions, ComputationOptions, Options, SummaryOptions

TAKING = [sr.apsp, sr.closure, sr.transitive_closure, sr.statistics, sr.diameter, sr.radius]


@pytest.mark.parametrize("function", TAKING, ids=lambda f: f.__name__)
def test_signatures_show_the_options_in_their_order_and_with_their_defaults(function: Callable[..., Any]) -> None:
    shown = {p.name: p for p in inspect.signature(function).parameters.values() if p.name in Options._fields}
    known: Any = ComputationOptions if function in (sr.diameter, sr.radius) else ClosureOptions
    known = SummaryOptions if function is sr.statistics else known
    assert list(shown) == [name for name in Options._fields if name in known.__optional_keys__]
    for name, parameter in shown.items():
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert parameter.default is Options._field_defaults[name]
        assert parameter.annotation == known.__annotations__[name].__forward_arg__ == Options.__annotations__[name].__forward_arg__
    assert ClosureOptions.__optional_keys__ == {*Options._fields}


_MATRIX, _SPARSE = np.array([[0.0, 1.0], [2.0, 0.0]]), sp.csr_array(np.array([[0.0, 1.0], [2.0, 0.0]]))

COUNTING: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (sr.apsp, (np.zeros((0, 0)),)),
    (sr.closure, (_SPARSE, "min-plus")),
    (sr.transitive_closure, (_SPARSE,)),
    (sr.statistics, (_SPARSE,)),
    (sr.diameter, (_SPARSE,)),
    (sr.radius, (_SPARSE,)),
    (sr.power, (_MATRIX, 0, "min-plus")),
    (sr.matmul, (_SPARSE, _SPARSE, "min-plus")),
    (sr.matmul, (_MATRIX.astype(object), _MATRIX, "min-plus")),
    (sr.multi_dot, ([_MATRIX, _MATRIX], "min-plus")),
    (sr.scan, (_MATRIX, "min-plus")),
    (functools.partial(sr.einsum, semiring="min-plus"), ("ij->i", _MATRIX)),
    (functools.partial(sr.contract_expression, semiring="min-plus"), ("ij->i", (2, 2))),
    (sr.pairwise, (_MATRIX,)),
    (sr.count_exactly, (_SPARSE,)),
    (sr.factor, (_SPARSE,)),
    (sr.cycle_mean, (sp.csr_array((2, 2)),)),
    (sr.k_shortest_paths, (_SPARSE, 0, 1, 1)),
    (sr.nearest, (_SPARSE, [0])),
    (sr.explain, (10,)),
]
"""Calls of all functions that take a number of threads, of which some would never count them."""


@pytest.mark.parametrize("threads", [0, "x", True, 1.5, np.ones(2)], ids=str)
def test_what_is_no_number_of_threads_is_refused(threads: Any) -> None:
    counting = {
        f for f in (getattr(sr, name) for name in sr.__all__) if inspect.isfunction(f) and "threads" in inspect.signature(f).parameters
    }
    assert counting == {getattr(function, "func", function) for function, _ in COUNTING}
    for function, arguments in COUNTING:
        with pytest.raises(sr.SemiringError, match=r"^threads is .*; it must be a whole number from 1"):
            function(*arguments, threads=threads)


@pytest.mark.parametrize("function", TAKING, ids=lambda f: f.__name__)
def test_another_keyword_is_refused_as_python_does(function: Callable[..., Any]) -> None:
    given = (np.zeros((1, 1)), sr.MIN_PLUS) if function is sr.closure else (np.zeros((1, 1)),)
    with pytest.raises(
        TypeError, match=rf"^{function.__name__}\(\) got an unexpected keyword argument 'divice'\. Did you mean 'device'\?$"
    ):
        function(*given, divice="cpu")
    with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) got an unexpected keyword argument 'bins_of_what'$"):
        function(*given, bins_of_what=1)


_WHOLE: dict[str, Callable[[Any], Any]] = {
    "k of k_best": lambda k: sr.k_best(k),
    "k of k_shortest_paths": lambda k: sr.k_shortest_paths(_MATRIX, 0, 1, k),
    "k of power": lambda k: sr.power(_MATRIX, k, "min-plus"),
    "k of farthest": lambda k: sr.apsp(_MATRIX, paths=True).farthest(k),
    "k of apsp": lambda k: sr.apsp(_MATRIX, k=k).indices,
    "k of pairwise": lambda k: sr.pairwise(np.ones((4, 2)), k=k).indices,
    "bins": lambda bins: sr.statistics(_MATRIX, bins=bins).bins,
    "block": lambda block: sr.apsp(_MATRIX, block=block),
    "threads": lambda threads: sr.apsp(_MATRIX, threads=threads),
    "sources": lambda source: sr.apsp(np.ones((4, 4)), sources=source),
    "n of explain": lambda n: sr.explain(n).n,
    "shape of random_matrix": lambda n: sr.testing.random_matrix("min-plus", n).shape,
    "lengths": lambda length: sr.scan(_MATRIX, "min-plus", lengths=length),
}


@pytest.mark.parametrize("kind", [np.int64, np.uint8], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("argument", _WHOLE)
def test_numpys_integers_are_whole_numbers(argument: str, kind: Any) -> None:
    np.testing.assert_equal(_WHOLE[argument](kind(3)), _WHOLE[argument](3))


def test_gpus_have_numbers_of_numpys_too() -> None:
    with pytest.raises(sr.SemiringError) as plain:
        sr.apsp(_MATRIX, device=[99])
    with pytest.raises(sr.SemiringError) as numpys:
        sr.apsp(_MATRIX, device=[np.int64(99)])
    assert str(numpys.value) == str(plain.value)
