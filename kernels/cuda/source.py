"""A semiring in some dtypes as the C++ struct that the kernel templates take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from semiring.algebra.expression import Expr
from semiring.kernels.cuda.emission import function, literal
from semiring.kernels.cuda.representation import Representation
from semiring.kernels.cuda.steps import Step, candidate

__all__ = ["semiring_struct"]


def semiring_struct(r: Representation, step: Step | None, *, star: bool = False, late: bool = False) -> str:
    """``struct Semiring`` with the operations of `r`, and a step by the row `step` of the table, if there is one; with a* if wanted.

    With `late`, steps leave to the end of a sum what can wait until then.
    """
    kinds = [d.name for d in r.dtypes]
    each = list(enumerate(kinds))
    fields = " ".join(f"{d} c{c};" for c, d in enumerate(r.registers))
    same = [d == e for d, e in zip(r.dtypes, r.registers, strict=True)]
    pointers = " ".join(f"{kind}* c{c};" for c, kind in each)
    count, pairs = (step.count, step.pairs) if step else (1, False)
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
        _operation("candidate", "Element a, Element b", r.postponed[0] if late else _candidates(r), r),
        _finish(r) if late else "",
        _accumulate(r, step),
        _harmless(),
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


def _operation(name: str, parameters: str, roots: Sequence[Expr], r: Representation) -> str:
    left, right = ([f"{d}({operand}.c{c})" for c, d in enumerate(r.dtypes)] for operand in "ab")
    lines, results = function(roots, left, right, r.dtypes, r.infinities)
    body = "".join(f"    {line}\n" for line in lines)
    return f"  static __device__ __forceinline__ Element {name}({parameters}) {{\n{body}    return {{{', '.join(results)}}};\n  }}"


def _candidates(r: Representation) -> Sequence[Expr]:
    return (candidate(r.add[0], r.mul[0], r.zero[0]),) if len(r.mul) == 1 else r.mul


def _finish(r: Representation) -> str:
    """What a sum of candidates stands for."""
    if all(e.op == "var" for e in r.postponed[1]):
        return _method("Element finish(Element a)", "return a;")
    lines, results = function(r.postponed[1], [f"{d}(a.c{c})" for c, d in enumerate(r.dtypes)], [], r.dtypes)
    return _method("Element finish(Element a)", " ".join([*lines, f"return add(zero(), {{{', '.join(results)}}});"]))


def _accumulate(r: Representation, step: Step | None) -> str:
    """c <- c + a x b for the steps that are taken at once; `a` and `b` are arrays of operands."""
    if step is None:
        body = "c = add(c, candidate(a[0], b[0]));"
    else:
        body = step.code.format(extremum=r.add[0].op)
    return _method("void accumulate(Element& c, const Element* a, const Element* b)", body)


def _harmless() -> str:
    """Whether 1 + p = 1."""
    return _method("bool harmless(Element p)", "return same(add(one(), p), one());")


def _star(r: Representation) -> str:
    """a*, and whether it does not exist; without a definition it is 1 for harmless pivots."""
    if r.star is None:
        diverges, star = "    return !harmless(a);\n", _method("Element star(Element a)", "return one();")
    else:
        operand = [f"{d}(a.c{c})" for c, d in enumerate(r.dtypes)]
        lines, (undefined,) = function([r.star_undefined], operand, [], r.dtypes, r.infinities, condition=True)
        diverges = "".join(f"    {line}\n" for line in lines) + f"    return {undefined};\n"
        star = _operation("star", "Element a", r.star, r)
    return f"  static __device__ __forceinline__ bool diverges(Element a) {{\n{diverges}  }}\n{star}"
