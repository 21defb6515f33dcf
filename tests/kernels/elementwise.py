"""Generated code for one operation on whole arrays: what a kernel does inside, without the product around it."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algebra.tracing import record
from semiring.kernels.cpu.compiler import compile_library, link
from semiring.kernels.cpu.emitter import ENTRY, Emitter, scalar_type
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.hardware import host

Array = np.ndarray[Any, Any]


def elementwise(
    function: Callable[..., Any], *operands: Array, isa: str | None = None, lanes: int | None = None, infinities: tuple[int, ...] = ()
) -> Array:
    """A callable of one or two scalars on arrays of one length, computed by generated code.

    Parameters
    ----------
    function : callable
    *operands : array
    isa : str, optional
    lanes : int, optional
        Of the vectors; by default as many as the processor has.
    infinities : tuple of int
        Integers that absorb sums.
    """
    (root,) = record(function, len(operands), 1).results
    target, scalars = host(isa), [scalar_type(x.dtype) for x in operands]
    width = lanes or target.vector_bytes // scalars[0].bytes

    def ir() -> str:
        em = Emitter("elementwise", ENTRY)
        words = [em.load("ptr", em.at("i64", "%args", i), 8) for i in range(len(operands) + 1)]
        count = em.load("i64", em.at("i64", "%args", len(operands) + 1), 8)
        low = Lowering(em, target, width, infinities=infinities)
        with em.each(0, count, width) as i:
            values = [[Value(em.load(s.vector(width), em.at(s.ir, word, i), s.bytes), s)] for word, s in zip(words, scalars, strict=False)]
            (result,) = low.evaluate([root], values[0], values[1] if len(values) > 1 else [], scalars[:1])
            em.store(scalars[0].vector(width), result.name, em.at(scalars[0].ir, words[-1], i), scalars[0].bytes)
        em.line("ret void")
        return link([em])

    library = compile_library(("elementwise", root, scalars, width, infinities), target, ir)
    length = -(-len(operands[0]) // width) * width
    padded = [np.resize(x, length) for x in operands]
    out = np.empty(length, dtype=operands[0].dtype)
    arguments = array("q", [*(x.ctypes.data for x in padded), out.ctypes.data, length])
    library.function("elementwise")(arguments)
    return out[: len(operands[0])]
