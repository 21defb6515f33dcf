"""What kernels that add one term after the other need of a semiring, beside its operations: see ``sums.cuh``."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels.cuda.representation import Representation
from semiring.kernels.cuda.source import literal

__all__ = ["sum_of", "summed_struct"]

DTypes = tuple[np.dtype[Any], ...]


def sum_of(semiring: Semiring, dtypes: DTypes, *, witness: bool) -> str:
    """The template of ``sums.cuh`` that adds terms up."""
    return "Selection" if witness else "Fold" if _scale(semiring, dtypes) is None else "LogSum"


def _scale(semiring: Semiring, dtypes: DTypes) -> float | None:
    """s, where ⊕ is log(e^{sa} + e^{sb}) / s of floats."""
    scale = semiring.program.exponential if len(dtypes) == 1 and dtypes[0].kind == "f" else None
    return None if scale is None else float(scale)


def summed_struct(semiring: Semiring, dtypes: DTypes, r: Representation) -> str:
    """``struct Summed``: the semiring with what is done to elements before they are multiplied and after they were added."""
    zero, scale = semiring.identities(dtypes)[0], _scale(semiring, dtypes) or 1.0
    encoded = decoded = "x"
    if r.clamped:
        encoded = "add(x, zero())"
        number = f"x.c0 {'>' if r.add[0].op == 'min' else '<'}= {r.registers[0]}(threshold)"
        decoded = f"{number} ? Element{{{literal(zero[0], r.registers[0])}}} : x"
    asked = " ".join(f"::prefetch(p.c{c} + i);" for c, _ in enumerate(r.dtypes))
    kind = r.registers[0]
    scales = [literal(x, kind) if kind.kind == "f" else "1" for x in (scale, 1 / scale)]
    methods = (
        f"Element encode(Element x) {{ return {encoded}; }}",
        f"Element decode(Element x, long long threshold) {{ return {decoded}; }}",
        f"void prefetch(const Pointers& p, long long i) {{ {asked} }}",
        f"{kind} scale() {{ return {scales[0]}; }}",
        f"{kind} inverse_scale() {{ return {scales[1]}; }}",
    )
    body = "".join(f"  static __device__ __forceinline__ {method}\n" for method in methods)
    return f"struct Summed : Semiring {{\n{body}}};\n"
