"""The kernels of a semiring in its dtypes for a processor, compiled at first use, with cached launches."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import const, flat
from semiring.kernels import cache
from semiring.kernels.cpu.compiler import Function, compile_library, link
from semiring.kernels.cpu.launch import pivot_launch, product_launch
from semiring.kernels.cpu.representation import Representation, Tile, choose_tile, represent
from semiring.kernels.hardware import Target, host

__all__ = ["Kernels", "identity", "kernels_for", "pivot_side"]

_LAUNCHES = 128
"""Cached launches, one per combination of shapes and strides: a recursive or blocked closure has a dozen."""


class Kernels:
    """Machine code for a semiring, its dtypes and a target, and cached launches.

    ``function`` returns a function by name: ``product``, ``product_witness``, ``close``, ``close_witness``, ``eliminate``,
    ``tight_trees``, a function of `ScanKernel`, or a function of `FrontKernel` or `SweepKernel`.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], target: Target) -> None:
        self.target = target
        self.representation = represent(semiring, dtypes, order_keys=target.order_keys)
        self.pivot = pivot_side(semiring, dtypes)
        self.tile = choose_tile(self.representation, target)
        self.witness_tile = choose_tile(self.representation, target, witness=True)
        tiles = (self.tile, self.witness_tile)
        self.loops: dict[Any, Function] = {}  # compiled loops with the operations of this semiring
        self.function = functools.cache(functools.partial(_function, self.representation, target, *tiles))
        self.product_launch, self.pivot_launch = (
            functools.lru_cache(_LAUNCHES)(functools.partial(launch, self.representation, tiles))
            for launch in (product_launch, pivot_launch)
        )

    def ir(self, name: str) -> str:
        """Return the LLVM IR of a function and its callees."""
        return _ir(self.representation, self.target, self.tile, self.witness_tile, name)


def identity(rep: Representation) -> tuple[Any, ...]:
    """Return the representation as part of a key, with the expressions in full, because their own repr is shortened."""
    programs = map(flat, (rep.add, rep.mul, rep.star or (), (rep.star_undefined,)))
    return replace(rep, add=(), mul=(), star=None, star_undefined=const(False)), *programs


def _function(rep: Representation, target: Target, tile: Tile, witness_tile: Tile, name: str) -> Function:
    key = (name, *identity(rep), tile, witness_tile)
    return compile_library(key, target, lambda: _ir(rep, target, tile, witness_tile, name)).function(name)


def _ir(rep: Representation, target: Target, tile: Tile, witness_tile: Tile, name: str) -> str:
    # Generators are imported only on a cache miss.
    from semiring.kernels.cpu.fronts import FrontKernel
    from semiring.kernels.cpu.gustavson import GustavsonKernel
    from semiring.kernels.cpu.lanes import LaneKernel, stack_loop
    from semiring.kernels.cpu.pivot import PivotKernel
    from semiring.kernels.cpu.product import ProductKernel
    from semiring.kernels.cpu.scan import ScanKernel
    from semiring.kernels.cpu.sparse import SparseKernel
    from semiring.kernels.cpu.sweeps import SweepKernel
    from semiring.kernels.cpu.tight_edges import TightKernel
    from semiring.kernels.cpu.vector import VectorKernel

    base, _, stacked = name.rpartition("_")
    if stacked == "lanes":
        return link(LaneKernel(rep.by_steps, target, tile, base).functions())
    if stacked == "stack":
        return "\n".join([_ir(rep, target, tile, witness_tile, base), link([stack_loop(rep, base)])])
    if name.startswith("product"):
        witness = name == "product_witness"
        functions = ProductKernel(rep, target, witness_tile if witness else tile, witness=witness).functions()
    elif name.startswith("sparse"):
        pair = name.startswith(("sparse_symbolic", "sparse_numeric"))
        functions = (GustavsonKernel if pair else SparseKernel)(rep, target, name).functions()
    elif "vector" in name:
        functions = VectorKernel(rep, target, tile, name).functions()
    elif name.startswith("fronts"):
        front = FrontKernel(rep.by_steps, target, tile.width, name)
        functions = front.functions() + PivotKernel(rep, target, tile.width).functions(front.pivot)
    elif name.startswith("sweep") or name == "gather":
        functions = SweepKernel(rep.by_steps, target, name).functions()
    elif name.startswith("tight"):
        functions = TightKernel(rep, target, name).functions()
    elif name.startswith("scan"):
        functions = ScanKernel(rep, target, tile.width, name).functions()
    else:
        functions = PivotKernel(rep, target, tile.width).functions(name)
    return link(functions)


def kernels_for(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], isa: str | None = None) -> Kernels:
    """Return the kernels of `semiring` in `dtypes` for this processor, or for one of its instruction sets."""
    return _kernels(semiring, dtypes, host(isa))


_kernels = functools.lru_cache(maxsize=cache.LOADED)(Kernels)


@functools.lru_cache(maxsize=cache.LOADED)
def pivot_side(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> int:
    """Return the side of the largest block closed element by element; 32 for log Σ exp, whose steps cost dozens of exponentials."""
    return 32 if represent(semiring, dtypes).kind == "exponential" else 128
