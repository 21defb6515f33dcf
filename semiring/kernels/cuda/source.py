"""The operations of a semiring as CUDA C++: recorded expressions become device functions of the struct that templates take.

Kernels with sums of single terms also take ``struct Summed``, with the encoding, decoding and scale of elements (``sums.cuh``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.elements import element, widest
from semiring.algebra.expression import COMPARISONS, REAL, Expr, fold
from semiring.common.errors import DTypeError, TraceError
from semiring.kernels.cuda.representation import Representation, Step, candidate, represent
from semiring.kernels.limits import DTypes, own_infinities

__all__ = ["function", "literal", "semiring_struct", "size_of_sum", "sum_of", "summing_source", "summing_structs"]

_Calls = Mapping[str, tuple[str, int | str]]

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip
_FUNCTION = {
    "min": "minimum", "max": "maximum", "abs": "magnitude", "floordiv": "floor_quotient", "mod": "floor_remainder",
    "shl": "shift_left", "shr": "shift_right",
}  # fmt: skip
_PREFIX = {"neg": "-", "invert": "~"}
_INTEGERS_ONLY = {"floordiv", "mod", "shl", "shr", "and", "or", "xor", "invert"}


@dataclass(frozen=True)
class _Value:
    """A subexpression: its text and its type, with None for a constant and `_CONDITION` for a condition."""

    text: str
    dtype: np.dtype[Any] | None
    constant: Any = None


_INLINED = 32  # statements of a*; within the loop over pivots, NVRTC analyses a chain of remainders, as an inverse modulo p is, for minutes

_CONDITION = np.dtype(bool, metadata={"condition": True})  # a distinct object, to tell conditions from components that are truth values


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """Return a number in the element's own type: a literal of type double would make a float kernel compute in double precision."""
    if dtype.kind == "f":
        number = element(value, dtype)
        if math.isinf(number):
            bits = {4: "__int_as_float(0x{:08x})", 8: "__longlong_as_double(0x{:016x}ll)"}[dtype.itemsize]
            return bits.format(int(np.array(number, dtype).view(f"u{dtype.itemsize}")))
        return f"{dtype}({number.hex()})"
    number = int(bool(value)) if dtype.kind == "b" else element(value, dtype, ordered=True)
    suffix = "ull" if dtype.kind == "u" else "ll"
    # The lowest integer has no literal in C++.
    text = f"(-{-(number + 1)}{suffix} - 1)" if number < -(2**62) else f"{number}{suffix}"
    return f"{dtype}({text})"


def function(
    roots: Sequence[Expr],
    left: Sequence[str],
    right: Sequence[str],
    dtypes: Sequence[np.dtype[Any]],
    infinities: Sequence[int] = (),
    *,
    condition: bool = False,
) -> tuple[list[str], list[str]]:
    """Return the statements that compute `roots`, and the expressions of their results.

    `left` and `right` are the operands' components as C++ expressions, and `dtypes` the types of operands' and results' components.
    `infinities` are integers that absorb sums. With `condition`, the roots are truth values.
    """
    writer = _Writer(widest(dtypes), infinities)
    operands = [[_Value(text, dtype) for text, dtype in zip(side, dtypes, strict=False)] for side in (left, right)]
    values = fold(roots, operands[0], operands[1], lambda c: _Value("", None, c), writer.operation)
    if condition:
        return writer.lines, [writer.condition(v) for v in values]
    return writer.lines, [writer.convert(v, d) for v, d in zip(values, dtypes, strict=True)]


class _Writer:
    """Writes each operation as a named constant, typed as in NumPy, so that nothing is computed twice."""

    def __init__(self, default: np.dtype[Any], infinities: Sequence[int]) -> None:
        self.default, self.infinities = default, tuple(infinities)
        self.lines: list[str] = []

    def operation(self, op: str, args: list[_Value]) -> _Value:
        """Write one operation, and return the result."""
        if op == "not":
            return self._let("bool", f"!{self.condition(args[0])}", _CONDITION)
        if op == "where":
            dtype = self._common(args[1:])
            test, yes, no = self.condition(args[0]), self.convert(args[1], dtype), self.convert(args[2], dtype)
            return self._let(dtype.name, f"{test} ? {yes} : {no}", dtype)
        dtype = self._common(args)
        x = [self.convert(a, dtype) for a in args]
        if op in COMPARISONS:
            return self._let("bool", f"{x[0]} {_INFIX[op]} {x[1]}", _CONDITION)
        kind = dtype.name
        return self._let(kind, self._arithmetic(op, kind, dtype, x), dtype)

    def _arithmetic(self, op: str, kind: str, dtype: np.dtype[Any], x: list[str]) -> str:
        if dtype.kind == "f" and op in ("floordiv", "mod"):
            sign = "//" if op == "floordiv" else "%"
            raise TraceError(f"{sign} on floats has no instruction; use integers, / with comparisons, or arrays on the host")
        if (op in _INTEGERS_ONLY and dtype.kind == "f") or ((op in REAL or op == "div") and dtype.kind != "f"):
            raise DTypeError(f"{op!r} has no meaning for {dtype}")
        if op == "add" and dtype.kind != "f":
            for infinity in own_infinities(self.infinities, dtype):
                return f"absorbing_sum<{kind}>({x[0]}, {x[1]}, {literal(infinity, dtype)})"
        if op in _INFIX:
            return f"{kind}({x[0]} {_INFIX[op]} {x[1]})"
        if op == "invert" and dtype.kind == "b":
            return f"!{x[0]}"  # ~true is −2, which is true again
        if op in _PREFIX:
            return f"{kind}({_PREFIX[op]}{x[0]})"
        if op == "div":
            return f"{x[0]} / {x[1]}"
        if op in REAL:
            return f"{op}{'f' if dtype.itemsize == 4 else ''}({x[0]})"
        return f"{_FUNCTION[op]}<{kind}>({', '.join(x)})"

    def convert(self, value: _Value, dtype: np.dtype[Any]) -> str:
        """Return `value` as a number of type `dtype`."""
        if value.dtype is None:
            return literal(value.constant, dtype)
        return value.text if value.dtype == dtype else f"{dtype}({value.text})"

    def condition(self, value: _Value) -> str:
        """Return `value` as a condition."""
        if value.dtype is None:
            return "true" if value.constant else "false"
        return value.text if value.dtype is _CONDITION else f"({value.text} != {value.dtype}(0))"

    def _common(self, args: Sequence[_Value]) -> np.dtype[Any]:
        """Return the type of an operation; conditions and constants alone have the elements' type."""
        return widest([a.dtype for a in args if a.dtype is not None and a.dtype is not _CONDITION] or [self.default])

    def _let(self, kind: str, text: str, dtype: np.dtype[Any]) -> _Value:
        name = f"t{len(self.lines)}"
        self.lines.append(f"const {kind} {name} = {text};")
        return _Value(name, dtype)


def semiring_struct(r: Representation, step: Step | None, *, star: bool = False, epilogue: bool = False) -> str:
    """Return ``struct Semiring`` with the operations of `r`, and a step from the instruction table if given.

    With `star`, the struct includes a*; with `epilogue`, the hoisted part of ⊗ as a function of the sum.
    """
    kinds = [d.name for d in r.dtypes]
    each = list(enumerate(kinds))
    fields = " ".join(f"{d} c{c};" for c, d in enumerate(r.registers))
    same = [d == e for d, e in zip(r.dtypes, r.registers, strict=True)]
    pointers = " ".join(f"{kind}* c{c};" for c, kind in each)
    count, pairs = (step.count, step.pairs) if step else (1, False)
    accumulate = step.code.format(extremum=r.add[0].op) if step else "c = add(c, candidate(a[0], b[0]));"
    # ⊗ without its hoisted part, or at least without what ⊕ makes superfluous.
    candidates = r.hoisted[0] if epilogue else (candidate(r.add[0], r.mul[0], r.zero[0]),) if len(r.mul) == 1 else r.mul
    lines = [
        f"struct {'Numbers' if pairs else 'Semiring'} {{",
        f"  struct alignas({min(r.size, 16)}) Element {{ {fields} }};",
        f"  struct Pointers {{ {pointers} }};",
        f"  static constexpr int steps = {count}, lanes = 1;",
        f"  static constexpr bool vectors = {str(len(kinds) == 1 and same[0]).lower()};",
        "",
        _method("bool aligned(const Pointers& p)", _all(f"reinterpret_cast<unsigned long long>(p.c{c}) % 16 == 0" for c, _ in each)),
        _method("void advance(Pointers& p, long long by)", " ".join(f"p.c{c} += by;" for c, _ in each)),
        _method("Element get(const Pointers& p, long long i)", "return {" + ", ".join(f"p.c{c}[i]" for c, _ in each) + "};"),
        _method("void put(const Pointers& p, long long i, Element x)", " ".join(f"p.c{c}[i] = x.c{c};" for c, _ in each)),
        _method(
            "Vector<Element> get_vector(const Pointers& p, long long i)", "return *reinterpret_cast<const Vector<Element>*>(p.c0 + i);"
        ),
        _method(
            "void put_vector(const Pointers& p, long long i, const Vector<Element>& x)",
            "*reinterpret_cast<Vector<Element>*>(p.c0 + i) = x;",
        ),
        _method(
            "void fetch(Shared target, const Pointers& p, long long, bool there)",
            " ".join(f"::fetch<{e}>(target + {at}, p.c{c}, there);" for (c, _), e, at in zip(each, r.registers, r.offsets, strict=True)),
        ),
        _method("Element part(const Pointers& p, long long i, long long, int count)", "return count > 0 ? get(p, i) : zero();"),
        _method("bool same(Element a, Element b)", _all(f"a.c{c} == b.c{c}" for c, _ in each)),
        "",
        _constant("zero", r.zero, r.registers),
        _constant("one", r.one, r.registers),
        _operation("add", "Element a, Element b", r.add, r),
        _operation("mul", "Element a, Element b", r.mul, r),
        _operation("candidate", "Element a, Element b", candidates, r),
        _epilogue(r) if epilogue else "",
        _method("void accumulate(Element& c, const Element* a, const Element* b, int place = 0)", accumulate),
        _method("bool harmless(Element p)", "return same(add(one(), p), one());"),
        _star(r) if star else "",
        "};",
        f"using Semiring = Pairs<Numbers, {kinds[0]}>;" if pairs else "",
    ]
    return "\n".join(lines) + "\n"


def _method(signature: str, body: str) -> str:
    return f"  static __device__ __forceinline__ {signature} {{ {body} }}"


def _all(conditions: Iterable[str]) -> str:
    return f"return {' && '.join(conditions)};"


def _constant(name: str, values: Sequence[Any], dtypes: Sequence[np.dtype[Any]]) -> str:
    numbers = ", ".join(literal(v, d) for v, d in zip(values, dtypes, strict=True))
    return _method(f"Element {name}()", f"return {{{numbers}}};")


def _operation(name: str, parameters: str, roots: Sequence[Expr], r: Representation, most: int | None = None) -> str:
    left, right = ([f"{d}({operand}.c{c})" for c, d in enumerate(r.dtypes)] for operand in "ab")
    lines, results = function(roots, left, right, r.dtypes, r.infinities)
    return _computed(f"Element {name}({parameters})", lines, f"{{{', '.join(results)}}}", most)


def _computed(signature: str, lines: Sequence[str], result: str, most: int | None = None) -> str:
    """Return a function, which is inlined unless it has more than `most` statements."""
    kind = "__forceinline__" if most is None or len(lines) <= most else "__noinline__"
    body = "".join(f"    {line}\n" for line in lines)
    return f"  static __device__ {kind} {signature} {{\n{body}    return {result};\n  }}"


def _epilogue(r: Representation) -> str:
    """Return the function from a sum of candidates to the result."""
    if all(e.op == "var" for e in r.hoisted[1]):
        return _method("Element epilogue(Element a)", "return a;")
    lines, results = function(r.hoisted[1], [f"{d}(a.c{c})" for c, d in enumerate(r.dtypes)], [], r.dtypes)
    return _method("Element epilogue(Element a)", " ".join([*lines, f"return add(zero(), {{{', '.join(results)}}});"]))


def _star(r: Representation) -> str:
    """Return a*, and the test for divergence; without a definition, a* is 1 for harmless pivots."""
    if r.star is None:
        diverges = _method("bool diverges(Element a)", "return !harmless(a);")
        star = _method("Element star(Element a)", "return one();")
    else:
        operand = [f"{d}(a.c{c})" for c, d in enumerate(r.dtypes)]
        lines, (undefined,) = function([r.star_undefined], operand, [], r.dtypes, r.infinities, condition=True)
        diverges = _computed("bool diverges(Element a)", lines, undefined, _INLINED)
        star = _operation("star", "Element a", r.star, r, _INLINED)
    return f"{diverges}\n{star}"


# Sums of terms.


def sum_of(semiring: Semiring, dtypes: DTypes, *, witness: bool) -> str:
    """Return the template of ``sums.cuh`` that adds the terms."""
    return "Selection" if witness else "Fold" if _scale(semiring, dtypes) is None else "LogSum"


def size_of_sum(semiring: Semiring, dtypes: DTypes, *, witness: bool) -> int:
    """Return the most bytes of a sum."""
    size = represent(semiring, dtypes).size
    return size if sum_of(semiring, dtypes, witness=witness) == "Fold" else 2 * size


def summing_source(
    semiring: Semiring, dtypes: DTypes, header: str, kernels: _Calls, *, step: Step | None = None, star: bool = False
) -> str:
    """Return the CUDA C++ of kernels that add terms: the semiring's structs, and instantiations of templates of `header`.

    `kernels` maps a name to a template with arguments, where ``Summed`` is the semiring, and to launch bounds: the most threads of a block
    and, optionally, the least blocks per multiprocessor. All kernels take the structure of the header's name. `semiring_struct` describes
    `step` and `star`.
    """
    parts = [f'#include "{header}.cuh"', "", summing_structs(semiring, dtypes, step=step, star=star)]
    for name, (call, bounds) in kernels.items():
        taken = f"const __grid_constant__ {header.capitalize()}<Summed> given"
        parts.append(f'extern "C" __global__ void __launch_bounds__({bounds}) {name}({taken}) {{\n  {call}(given);\n}}\n')
    return "\n".join(parts)


def _scale(semiring: Semiring, dtypes: DTypes) -> float | None:
    """Return s, if ⊕ is log(e^{sa} + e^{sb}) / s of floats, else None."""
    scale = semiring.program.exponential if len(dtypes) == 1 and dtypes[0].kind == "f" else None
    return None if scale is None else float(scale)


def summing_structs(semiring: Semiring, dtypes: DTypes, *, step: Step | None = None, star: bool = False) -> str:
    """Return the semiring's struct (see `semiring_struct`), and ``struct Summed`` with the encoding and decoding of elements."""
    r = represent(semiring, dtypes)
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
    return f"{semiring_struct(r, step, star=star)}\nstruct Summed : Semiring {{\n{body}{_staged(r)}}};\n"


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
