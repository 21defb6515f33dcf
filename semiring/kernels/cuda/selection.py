"""The k best entries of each row of a product on a GPU: one kernel multiplies and selects, and stores nothing of the size m × n.

A thread block has some rows, and goes through the columns in tiles. A comparison with the worst of the best so far rejects most entries.
Where rows are few, several blocks share the columns, and their selections are merged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import Expr, nodes, var
from semiring.common.forks import cached_property
from semiring.kernels.cuda.arguments import SelectK, word_of
from semiring.kernels.cuda.blocks import access, aligned_copy, by_value, matrix_of, of_one_layout
from semiring.kernels.cuda.compiler import semiring_kernel_for
from semiring.kernels.cuda.elements import for_each
from semiring.kernels.cuda.representation import Representation, represent
from semiring.kernels.cuda.source import function, literal, semiring_struct
from semiring.kernels.engine import Block
from semiring.kernels.hardware import Device, device
from semiring.kernels.limits import absorbing

__all__ = ["SelectionForm", "best_of_rows", "finish_sums", "has_selection", "selection_source"]

_NAN = "__int_as_float(0x7fc00000)"
_THREADS = 64  # of a block, as in ``selection.cuh``
_BLOCKS, _LEAST_PART = 5, 1024  # blocks per multiprocessor, and the fewest columns of a part where rows are few


@dataclass(frozen=True)
class SelectionForm:
    """A product and the function of its sums.

    `finish` is an expression of an element's components and of the double `total` (operand 1), or None for the first component.
    """

    semiring: Semiring
    dtypes: tuple[np.dtype[Any], ...]
    finish: Expr | None
    largest: bool

    @cached_property
    def representation(self) -> Representation:
        """The operations on elements as they lie in memory: tropical integers are not clamped, because no copy is made."""
        r = represent(self.semiring, self.dtypes)
        if not r.clamped:
            return r
        zero, _ = self.semiring.identities(self.dtypes)
        return replace(r, clamped=False, zero=zero, infinities=absorbing(self.semiring, self.dtypes))

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a thread."""
        return {4: (8, 8), 8: (8, 4)}.get(self.representation.size, (4, 4))

    @property
    def depth(self) -> int:
        """Steps of a slab: a finished tile takes the place of a slab of the operands."""
        return 32 if self.representation.size <= 8 else 16

    def shared_bytes(self, k: int) -> int:
        """Return the bytes of two slabs and of the best entries."""
        (rows, columns), size = self.tile, self.representation.size
        slab = 8 * (rows * (self.depth * size + 16) + columns * self.depth * size)
        return 2 * slab + 8 * rows * k * 2 * self.dtypes[0].itemsize


def has_selection(form: SelectionForm, k: int, depth: int) -> bool:
    """Return True if the kernel computes this product: small elements, and room for k entries a row in the current GPU's shared memory.

    Products by exponentials are faster.
    """
    r = form.representation
    if form.semiring.program.exponential is not None:
        return False
    return depth > 0 and r.same_registers and 4 <= r.size <= 16 and form.shared_bytes(k) <= _current()[1].block_shared_bytes


def _current() -> tuple[int, Device]:
    import cupy

    number = int(cupy.cuda.Device().id)
    return number, device(number)


def selection_source(form: SelectionForm, vectors: bool) -> str:
    """Return the CUDA C++ of the kernel ``select``."""
    r, (rows, columns) = form.representation, form.tile
    value, finish = r.dtypes[0], _finish(form.finish, [f"x.c{c}" for c, _ in enumerate(r.dtypes)], "total", r.dtypes, "return {};")
    last = _NAN if value.kind == "f" else literal(int(np.iinfo(value).min if form.largest else np.iinfo(value).max), value)
    return f"""#include "selection.cuh"

{semiring_struct(r, None)}
struct Selected : Semiring {{
  using Value = {value};
  static constexpr bool LARGEST = {str(form.largest).lower()};
  static __device__ __forceinline__ Value last() {{ return {value}({last}); }}
  static __device__ __forceinline__ Value finish(Element x, double total) {{ {finish} }}
}};
extern "C" __global__ void __launch_bounds__({_THREADS}, {_BLOCKS}) select(const __grid_constant__ SelectK<Selected> given) {{
  select_best<Selected, {rows}, {columns}, {form.depth}, {str(vectors).lower()}>(given);
}}
"""


def finish_sums(finish: Expr, sums: tuple[Any, ...], total: float, out: Any) -> None:
    """Write the function of the sums to `out`, which may be the only sum; all are floats of one dtype on the current GPU."""
    names = [f"x{c}" for c, _ in enumerate(sums)] if sums[0] is not out else ["y"]
    body = _finish(finish, names, "__longlong_as_double(total)", (out.dtype,) * len(sums), "y = {};")
    for_each(f"{{ {body} }}", {"y": out} | dict(zip(names, sums, strict=True)), total=word_of(total))


def _finish(finish: Expr | None, names: list[str], total: str, dtypes: tuple[np.dtype[Any], ...], last: str) -> str:
    """Return the statements of `finish`; `{}` in the last one stands for the result. Extrema keep a NaN of a sum."""
    sums = [var(0, c) for c, _ in enumerate(names)]
    lines, (found, *_) = function([finish or sums[0], *sums[1:]], names, [f"{dtypes[0]}({total})"], dtypes)
    if finish is not None and dtypes[0].kind == "f" and {"min", "max"} & {e.op for e in nodes(finish)}:
        found = f"{' || '.join(f'{name} != {name}' for name in names)} ? {dtypes[0]}({_NAN}) : {found}"
    return " ".join([*lines, last.format(found)])


def best_of_rows(
    form: SelectionForm, left: tuple[Any, ...], right: tuple[Any, ...], k: int, total: float, nan: tuple[Any, Any]
) -> tuple[Any, Any]:
    """Return the k best entries of each row in some parts of a product, and their columns, as two arrays of shape (m, parts · k).

    The entries of a part are in order. `left` and `right` are the components of the operands on the current GPU, and `total` is the second
    operand of `finish`. `nan` has the masks of rows of `left` and columns of `right` with NaN, or None.
    """
    import cupy

    A, B = (Block(tuple([v[None] for v in of_one_layout(x)])) for x in (left, right))
    vectors = len(left) == 1
    if vectors:
        A, B = (X if access(X) == "vectors" else aligned_copy(X) for X in (A, B))
    (m, depth), n = left[0].shape, right[0].shape[1]
    number, limits = _current()
    rows, columns = (8 * t for t in form.tile)
    panels = -(-m // rows)
    wanted = max(1, min(4 * _BLOCKS * limits.multiprocessors // max(1, panels), n // max(_LEAST_PART, 8 * k)))
    width = -(-n // (wanted * columns)) * columns
    parts = -(-n // width)
    values, columns_of = cupy.empty((parts, m, k), form.dtypes[0]), cupy.empty((parts, m, k), np.int64)
    masks = [None if v is None else cupy.ascontiguousarray(v) for v in nan]
    nan_rows, nan_columns = (0 if v is None else v.data.ptr for v in masks)
    places = values.data.ptr, columns_of.data.ptr
    given = SelectK(matrix_of(A), matrix_of(B), m, n, depth, k, width, word_of(total), nan_rows, nan_columns, *places)
    kernel = semiring_kernel_for("select", number, selection_source, form, vectors, shared_bytes=limits.block_shared_bytes)
    if m:
        kernel((panels * parts, 1, 1), (_THREADS, 1, 1), (by_value(given),), form.shared_bytes(k))
    values, columns_of = (v.transpose(1, 0, 2).reshape(m, parts * k) for v in (values, columns_of))
    return values, columns_of
