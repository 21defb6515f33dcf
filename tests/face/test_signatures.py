"""Signatures: options that are written once show in every function that takes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.planning.options import ClosureOptions, ComputationOptions, Options

TAKING = [sr.apsp, sr.closure, sr.transitive_closure, sr.statistics, sr.diameter, sr.radius]


@pytest.mark.parametrize("function", TAKING, ids=lambda f: f.__name__)
def test_signatures_show_the_options_in_their_order_and_with_their_defaults(function: Callable[..., Any]) -> None:
    shown = {p.name: p for p in inspect.signature(function).parameters.values() if p.name in Options._fields}
    known = ComputationOptions if function in (sr.statistics, sr.diameter, sr.radius) else ClosureOptions
    assert list(shown) == [name for name in Options._fields if name in known.__optional_keys__]
    for name, parameter in shown.items():
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert parameter.default is Options._field_defaults[name]
        assert parameter.annotation == known.__annotations__[name].__forward_arg__ == Options.__annotations__[name].__forward_arg__
    assert ClosureOptions.__optional_keys__ == {*Options._fields}


@pytest.mark.parametrize("function", TAKING, ids=lambda f: f.__name__)
def test_another_keyword_is_refused_as_python_does(function: Callable[..., Any]) -> None:
    given = (np.zeros((1, 1)), sr.MIN_PLUS) if function is sr.closure else (np.zeros((1, 1)),)
    with pytest.raises(
        TypeError, match=rf"^{function.__name__}\(\) got an unexpected keyword argument 'divice'\. Did you mean 'device'\?$"
    ):
        function(*given, divice="cpu")
    with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) got an unexpected keyword argument 'bins_of_what'$"):
        function(*given, bins_of_what=1)
