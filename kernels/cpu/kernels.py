"""The compiled kernels of a semiring in its dtypes, each made at its first use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import const, flat
from semiring.kernels import cache
from semiring.kernels.cpu.compiler import compile_library, link
from semiring.kernels.cpu.launch import pivot_launch, product_launch
from semiring.kernels.cpu.representation import Representation, represent
from semiring.kernels.cpu.target import Target, host
from semiring.kernels.cpu.tile import Tile, choose

__all__ = ["Kernels", "kernels_for"]

_LAUNCHES = 128
"""Ways in which matrices lie, whose launches are kept: a recursive or blocked closure has a dozen."""


class Kernels:
    """Machine code for one semiring, its dtypes and one target.

    Attributes
    ----------
    representation, tile, witness_tile, target
        What the code was generated from.
    function : callable
        ``product``, ``product_witness``, ``close``, ``close_witness``, ``eliminate``, or what `search_name` gives, by its name.
    product_launch, pivot_launch : callable
        Those of this representation and these tiles; what was used last is kept.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], target: Target) -> None:
        self.target = target
        self.representation = represent(semiring, dtypes, order_keys=target.order_keys)
        self.tile = choose(self.representation, target)
        self.witness_tile = choose(self.representation, target, witness=True)
        tiles = (self.tile, self.witness_tile)
        self.function = functools.cache(functools.partial(_function, self.representation, target, *tiles))
        self.product_launch = functools.lru_cache(_LAUNCHES)(functools.partial(product_launch, self.representation, tiles))
        self.pivot_launch = functools.lru_cache(_LAUNCHES)(functools.partial(pivot_launch, self.representation))

    def ir(self, name: str) -> str:
        """The LLVM IR of a function and those that it calls."""
        return _ir(self.representation, self.target, self.tile, self.witness_tile, name)


def _function(rep: Representation, target: Target, tile: Tile, witness_tile: Tile, name: str) -> Callable[[int], None]:
    """A function, compiled or from the cache."""
    library = compile_library((name, *_identity(rep), tile, witness_tile), target, lambda: _ir(rep, target, tile, witness_tile, name))
    return library.function(name)


def _ir(rep: Representation, target: Target, tile: Tile, witness_tile: Tile, name: str) -> str:
    # The generator is imported only where the cache does not have its output.
    from semiring.kernels.cpu.pivot import PivotKernel
    from semiring.kernels.cpu.product import ProductKernel
    from semiring.kernels.cpu.search import SearchKernel
    from semiring.kernels.cpu.witness import WitnessKernel

    if name == "product":
        functions = ProductKernel(rep, target, tile, witness=False).functions()
    elif name == "product_witness":
        tile = witness_tile
        functions = ProductKernel(rep, target, tile, witness=True).functions() + WitnessKernel(rep, target, tile).functions()
    elif name.startswith("search"):
        functions = SearchKernel(rep, target, name).functions()
    else:
        functions = PivotKernel(rep, target, tile.width).functions(name)
    return link(functions)


def _identity(rep: Representation) -> tuple[object, ...]:
    """A representation for the key of a cache: its repr, and in full the expressions, which their repr abbreviates."""
    programs = (rep.add, rep.mul, rep.star or (), (rep.star_undefined,))
    return (replace(rep, add=(), mul=(), star=None, star_undefined=const(False)), *map(flat, programs))


def kernels_for(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], isa: str | None = None) -> Kernels:
    """The kernels of `semiring` in `dtypes` for this processor (or the instruction set `isa` of it)."""
    return _kernels(semiring, dtypes, host(isa))


_kernels = functools.lru_cache(maxsize=cache.LOADED)(Kernels)
