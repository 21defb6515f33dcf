"""C++ structs for kernels that add terms one after the other: encoding, decoding and scaling, see ``sums.cuh``."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels.cuda.representation import Representation, represent
from semiring.kernels.cuda.source import literal, semiring_struct
from semiring.kernels.cuda.steps import Step

__all__ = ["size_of_sum", "sum_of", "summing_source", "summing_structs"]

DTypes = tuple[np.dtype[Any], ...]


def sum_of(semiring: Semiring, dtypes: DTypes, *, witness: bool) -> str:
    """Return the template of ``sums.cuh`` that adds the terms."""
    return "Selection" if witness else "Fold" if _scale(semiring, dtypes) is None else "LogSum"


def size_of_sum(semiring: Semiring, dtypes: DTypes, *, witness: bool) -> int:
    """Return the most bytes of a sum."""
    size = represent(semiring, dtypes).size
    return size if sum_of(semiring, dtypes, witness=witness) == "Fold" else 2 * size


def summing_source(
    semiring: Semiring, dtypes: DTypes, header: str, name: str, call: str, bound: int, *, blocks: int = 1, step: Step | None = None
) -> str:
    """Return the CUDA C++ of a kernel that adds terms: the semiring's structs, and an instantiation of a template of `header`.

    `name` names the kernel, its parameter, and, capitalized, the parameter's structure. `call` is the template with its arguments, with
    ``Summed`` for the semiring. A block has at most `bound` threads, and a multiprocessor at least `blocks` blocks. See `semiring_struct`
    for `step`.
    """
    bounds = f"{bound}, {blocks}" if blocks > 1 else f"{bound}"
    taken = f"const __grid_constant__ {name.capitalize()}<Summed> {name}"
    return "\n".join(
        [
            '#include "arithmetic.cuh"',
            f'#include "{header}"',
            "",
            summing_structs(semiring, dtypes, step=step),
            f'extern "C" __global__ void __launch_bounds__({bounds}) {name}({taken}) {{',
            f"  {call}({name});",
            "}\n",
        ]
    )


def summing_structs(semiring: Semiring, dtypes: DTypes, *, step: Step | None = None, star: bool = False) -> str:
    """Return the semiring's structs in C++ (see `semiring_struct`), with the encoding and decoding of elements."""
    r = represent(semiring, dtypes)
    return semiring_struct(r, step, star=star) + "\n" + _summed_struct(semiring, dtypes, r)


def _scale(semiring: Semiring, dtypes: DTypes) -> float | None:
    """Return s, if ⊕ is log(e^{sa} + e^{sb}) / s of floats, else None."""
    scale = semiring.program.exponential if len(dtypes) == 1 and dtypes[0].kind == "f" else None
    return None if scale is None else float(scale)


def _summed_struct(semiring: Semiring, dtypes: DTypes, r: Representation) -> str:
    """Return ``struct Summed``: the semiring, the encoding of elements before products, and the decoding after sums."""
    zero, scale = semiring.identities(dtypes)[0], _scale(semiring, dtypes) or 1.0
    encoded = decoded = "x"
    if r.clamped:
        encoded = "add(x, zero())"
        number = f"x.c0 {'>' if r.add[0].op == 'min' else '<'}= {r.registers[0]}(threshold)"
        decoded = f"{number} ? Element{{{literal(zero[0], r.registers[0])}}} : x"
    asked = " ".join(f"::prefetch(p.c{c} + i);" for c, _ in enumerate(r.dtypes))
    kept = " ".join(f"::keep(p.c{c});" for c, _ in enumerate(r.dtypes))
    behind = ", ".join(f"row_behind(p.c{c}, k, apart)" for c, _ in enumerate(r.dtypes))
    kind = r.registers[0]
    scales = [literal(x, kind) if kind.kind == "f" else "1" for x in (scale, 1 / scale)]
    methods = (
        f"Element encode(Element x) {{ return {encoded}; }}",
        f"Element decode(Element x, long long threshold) {{ return {decoded}; }}",
        f"void prefetch(const Pointers& p, long long i) {{ {asked} }}",
        f"void keep(Pointers& p) {{ {kept} }}",
        f"Pointers row(const Pointers& p, int k, unsigned apart) {{ return {{{behind}}}; }}",
        f"Pointers row(const Pointers& p, long long k, unsigned apart) {{ return {{{behind}}}; }}",
        f"{kind} scale() {{ return {scales[0]}; }}",
        f"{kind} inverse_scale() {{ return {scales[1]}; }}",
    )
    body = "".join(f"  static __device__ __forceinline__ {method}\n" for method in methods)
    return f"struct Summed : Semiring {{\n{body}{_staged(r)}}};\n"


def _staged(r: Representation) -> str:
    """Return ``struct Tile``: elements in a thread block's shared memory, with each component in its own array."""
    each = list(enumerate(r.dtypes))
    fields = " ".join(f"Staged<{d}, MIXED> c{c};" for c, d in each)
    element = ", ".join(f"c{c}[i]" for c, _ in each)
    begun = ", ".join(f"c{c}(shared, p.c{c} + first, count, room)" for c, _ in each)
    taken = "char*& shared, const Pointers& p, long long first, int count, int room"
    return (
        f"  template <bool MIXED> struct Tile {{\n    {fields}\n    __device__ __forceinline__ Tile({taken}) : {begun} {{}}\n"
        f"    __device__ __forceinline__ Element operator[](int i) const {{ return {{{element}}}; }}\n  }};\n"
    )
