"""The compiled kernels of one semiring in its dtypes for one GPU, each made at its first use."""

from __future__ import annotations

import functools
from typing import Any, cast

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels.cuda.compiler import compile_source
from semiring.kernels.cuda.device import device
from semiring.kernels.cuda.representation import Representation, represent
from semiring.kernels.cuda.source import semiring_struct
from semiring.kernels.cuda.steps import Operations, Step, best_step
from semiring.kernels.cuda.tile import Tile

__all__ = ["DYNAMIC_SHARED_BYTES", "Kernels", "kernel_source", "kernels_for", "pivot_shape", "step_for"]

DYNAMIC_SHARED_BYTES = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""


def pivot_shape(r: Representation) -> tuple[int, int]:
    """The side of the largest pivot block, and of a thread's part of it."""
    return (128, 4) if r.size <= 4 else (64, 4)


def step_for(r: Representation, arch: int, *, ordered_bits: bool) -> Step | None:
    """The row of the table of steps for single numbers; None for structured elements and where no row fits."""
    if len(r.dtypes) > 1:
        return None
    return best_step(Operations(r.add[0], r.mul[0], r.registers[0], ordered_bits, r.zero[0] >= 0, arch))


def kernel_source(
    r: Representation, step: Step | None, name: str, tile: Tile | None = None, access: tuple[str, str] = ("rows", "rows")
) -> str:
    """The CUDA C++ of one kernel: the templates, the semiring's struct, and an instantiation that is called `name`.

    Parameters
    ----------
    r : Representation
    step : Step or None
    name : {"product", "product_witness", "close", "close_witness", "eliminate", "add_identity"}
    tile : Tile
        Of a product.
    access : tuple of {"vectors", "rows", "columns"}
        How a product reads A and B.
    """
    template = "product" if name.startswith("product") else "pivot"
    parts = ['#include "arithmetic.cuh"', f'#include "{template}.cuh"', "", semiring_struct(r, step, star=name == "eliminate")]
    witness = name.endswith("_witness")
    if template == "product":
        assert tile is not None
        sizes = f"{tile.rows}, {tile.columns}, {tile.depth}, {tile.thread_rows}, {tile.thread_columns}, {tile.stages}"
        arguments = [_matrix(r, x) for x in "abc"] + ["long long m, long long n, long long k, long long fresh"]
        values = [_braced(r, x) for x in "abc"] + ["Extent{int(m), int(n), int(k)}, fresh != 0"]
        if witness:
            arguments += [_matrix(r, "t"), "int* via, long long via_row, long long via_batch, long long first"]
            values.append(f"Witness<Semiring>{{{_braced(r, 't')}, via, via_row, via_batch, int(first)}}")
        else:
            values.append("Witness<Semiring>{}")
        bounds, call = (
            f"__launch_bounds__({tile.threads}, {tile.blocks}) ",
            f"multiply_tile<Semiring, {sizes}, Access::{access[0]}, Access::{access[1]}, {str(witness).lower()}>",
        )
    else:
        arguments = [_matrix(r, "a"), "long long n"]
        values = [_braced(r, "a"), "int(n)"]
        if name == "add_identity":
            bounds, call = "", "include_identity<Semiring>"
        else:
            side, part = pivot_shape(r)
            arguments.append("int* via, long long via_row, long long via_batch, long long first, int* harmful")
            values.append("Via{via, via_row, via_batch, int(first)}, harmful")
            bounds = f"__launch_bounds__({(side // part) ** 2}) "
            call = (
                f"eliminate_block<Semiring, {side}, {part}>"
                if name == "eliminate"
                else f"close_block<Semiring, {side}, {part}, {str(witness).lower()}>"
            )
    parts.append(f'extern "C" __global__ void {bounds}{name}({", ".join(arguments)}) {{\n  {call}({", ".join(values)});\n}}\n')
    return "\n".join(parts)


def _matrix(r: Representation, name: str) -> str:
    """The parameters of a matrix: a pointer a component, and the strides."""
    pointers = ", ".join(f"{d}* {name}{c}" for c, d in enumerate(r.dtypes))
    return f"{pointers}, long long {name}_row, long long {name}_column, long long {name}_batch"


def _braced(r: Representation, name: str) -> str:
    pointers = ", ".join(f"{name}{c}" for c in range(len(r.dtypes)))
    return f"Matrix<Semiring>{{{{{pointers}}}, {name}_row, {name}_column, {name}_batch}}"


class Kernels:
    """Loaded kernels of one semiring in its dtypes on one GPU.

    Attributes
    ----------
    representation : Representation
    device : Device
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int) -> None:
        self.representation = represent(semiring, dtypes)
        self.device = device(number)
        self._functions: dict[Any, Any] = {}

    def function(
        self, name: str, *, ordered_bits: bool = False, tile: Tile | None = None, access: tuple[str, str] = ("rows", "rows")
    ) -> Any:
        """A kernel, which is called with a grid, a block, its arguments and its shared memory."""
        key = (name, ordered_bits, tile, access)
        found = self._functions.get(key)
        if found is None:
            found = self._functions[key] = self._load(*key)
        return found

    def _load(self, name: str, ordered_bits: bool, tile: Tile | None, access: tuple[str, str]) -> Any:
        import cupy

        r = self.representation
        source = kernel_source(r, step_for(r, self.device.arch, ordered_bits=ordered_bits), name, tile, access)
        module: Any = cupy.cuda.Module()
        module.load(compile_source(source, self.device.arch))
        function = module.get_function(name)
        if tile is not None:
            cast("Any", cupy.cuda.driver).funcSetAttribute(
                function.ptr, DYNAMIC_SHARED_BYTES, tile.shared_bytes(r.size, witness=name.endswith("_witness"))
            )
        return function


@functools.lru_cache(maxsize=512)
def kernels_for(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int) -> Kernels:
    """The kernels of `semiring` in `dtypes` for GPU `number`."""
    return Kernels(semiring, dtypes, number)
