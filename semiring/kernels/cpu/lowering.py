"""Recorded expressions as vector instructions: types, conversions, conditions, memory operands, and C ← C ⊕ candidate.

Every constant is emitted in the element's type. `update` merges a vector of candidates with C in memory, and writes the witness where C
improves strictly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from semiring.algebra.elements import element, widest
from semiring.algebra.expression import COMPARISONS, Expr, fold
from semiring.kernels.cpu.emitter import I32, Carried, Scalar, scalar_type
from semiring.kernels.cpu.instructions import Instructions
from semiring.kernels.cpu.representation import Representation

__all__ = [
    "BroadcastOperand", "Lowering", "Value", "Via", "chosen", "constants", "empty_sums", "encoded", "improve", "improved", "load_elements",
    "merge", "spread", "store_elements", "store_where", "take_in", "update", "values",
]  # fmt: skip


@dataclass(frozen=True)
class Value:
    """A vector in a register: its name and element type; None for a condition."""

    name: str
    scalar: Scalar | None


@dataclass
class BroadcastOperand:
    """A scalar in memory to broadcast; loaded, once, if some instruction cannot broadcast a memory operand itself."""

    pointer: str
    scalar: Scalar
    loaded: Value | None = None


@dataclass(frozen=True)
class _Constant:
    """A number of the expression, still untyped."""

    value: Any


Operand = Value | BroadcastOperand

_EMBEDDED = {
    "add": {"f4": "vaddps", "f8": "vaddpd", "i4": "vpaddd", "i8": "vpaddq", "u4": "vpaddd", "u8": "vpaddq"},
    "mul": {"f4": "vmulps", "f8": "vmulpd", "i4": "vpmulld", "i8": "vpmullq", "u4": "vpmulld", "u8": "vpmullq"},
    "min": {"f4": "vminps", "f8": "vminpd", "i4": "vpminsd", "i8": "vpminsq", "u4": "vpminud", "u8": "vpminuq"},
    "max": {"f4": "vmaxps", "f8": "vmaxpd", "i4": "vpmaxsd", "i8": "vpmaxsq", "u4": "vpmaxud", "u8": "vpmaxuq"},
    "and": {"i4": "vpandd", "i8": "vpandq", "u4": "vpandd", "u8": "vpandq"},
    "or": {"i4": "vpord", "i8": "vporq", "u4": "vpord", "u8": "vporq"},
    "xor": {"i4": "vpxord", "i8": "vpxorq", "u4": "vpxord", "u8": "vpxorq"},
}
"""AVX-512 instructions that broadcast a scalar memory operand for free, by operation and type (all commute)."""

_FUSED = {4: "vfmadd231ps", 8: "vfmadd231pd"}
"""Fused multiply-adds of floats with a memory operand, by size."""


class Lowering(Instructions):
    """Emits expressions over vectors: `Instructions` with types."""

    flag = Scalar("u", 1)
    """The type of a condition as a number."""

    _default: Scalar | None = None

    def evaluate(self, roots: Sequence[Expr], left: Sequence[Operand], right: Sequence[Operand], results: Sequence[Scalar]) -> list[Value]:
        """Return the values of `roots` for the components of two operands, each converted to its result type."""
        self._default = _widest([*(x.scalar for x in (*left, *right)), *results])
        values: list[Operand | _Constant] = fold(roots, left, right, _Constant, self._operation)
        return [self.convert(value, scalar) for value, scalar in zip(values, results, strict=True)]

    # Operands.

    def convert(self, x: Operand | _Constant, scalar: Scalar) -> Value:
        """Return `x` in a register, as elements of type `scalar`."""
        if isinstance(x, _Constant):
            return Value(scalar.constant(element(x.value, scalar.dtype, ordered=True), self.width), scalar)
        if isinstance(x, BroadcastOperand):
            if x.loaded is None:
                number = self.em.load(x.scalar.ir, x.pointer, x.scalar.bytes)
                x.loaded = Value(self.em.splat(number, x.scalar, self.width), x.scalar)
            x = x.loaded
        if x.scalar == scalar:
            return x
        to = scalar.vector(self.width)
        if x.scalar is None:
            op = "uitofp" if scalar.kind == "f" else "zext"
            return Value(self.em.let(f"{op} {self.mask} {x.name} to {to}"), scalar)
        old, new = x.scalar, scalar
        if old.kind == "f" and new.kind == "f":
            op = "fpext" if new.bytes > old.bytes else "fptrunc"
        elif old.kind == "f":
            op = "fptosi" if new.kind == "i" else "fptoui"
        elif new.kind == "f":
            op = "sitofp" if old.kind == "i" else "uitofp"
        elif old.bytes == new.bytes:
            return Value(x.name, scalar)
        else:
            op = "trunc" if new.bytes < old.bytes else "sext" if old.kind == "i" else "zext"
        return Value(self.em.let(f"{op} {old.vector(self.width)} {x.name} to {to}"), scalar)

    def condition(self, x: Operand | _Constant) -> str:
        """Return `x` as a vector of truth values."""
        if isinstance(x, _Constant):
            return self._truth(x.value)
        if isinstance(x, Value) and x.scalar is None:
            return x.name
        return self._compare("ne", [x, _Constant(0)]).name

    def _common(self, args: Sequence[Operand | _Constant]) -> Scalar:
        """Return the type of an operation on `args`; conditions and constants alone take the elements' type."""
        return _widest([a.scalar for a in args if not isinstance(a, _Constant)]) or self._default or Scalar("i", 4)

    # Operations.

    def _operation(self, op: str, args: list[Operand | _Constant]) -> Operand | _Constant:
        if op in COMPARISONS:
            return self._compare(op, args)
        if op == "not":
            return Value(self.em.let(f"xor {self.mask} {self.condition(args[0])}, {self._truth(True)}"), None)
        if op == "where":
            return self._where(args)
        scalar = self._common(args)
        embedded = self._embed(op, args, scalar)
        if embedded is not None:
            return embedded
        x = [self.convert(a, scalar).name for a in args]
        if self.absorbs(op, scalar):
            variables = [name for name, a in zip(x, args, strict=True) if not isinstance(a, _Constant)]
            return Value(self.absorbing_sum(scalar, x, variables), scalar)
        return Value(self.arithmetic(op, scalar, x), scalar)

    def _truth(self, value: Any) -> str:
        word = "true" if value else "false"
        return word if self.width == 1 else f"splat (i1 {word})"

    def _where(self, args: list[Operand | _Constant]) -> Value:
        test = self.condition(args[0])
        if all(not isinstance(a, _Constant) and a.scalar is None for a in args[1:]):
            yes, no = self.condition(args[1]), self.condition(args[2])
            return Value(self.em.let(f"select {self.mask} {test}, {self.mask} {yes}, {self.mask} {no}"), None)
        scalar = self._common(args[1:])
        yes, no = (self.convert(a, scalar).name for a in args[1:])
        return Value(self.select(test, scalar, yes, no), scalar)

    def _compare(self, op: str, args: list[Operand | _Constant]) -> Value:
        if all(not isinstance(a, _Constant) and a.scalar is None for a in args):
            args = [self.convert(a, self.flag) for a in args]
        scalar = self._common(args)
        x, y = (self.convert(a, scalar).name for a in args)
        return Value(self.compare(op, scalar, x, y), None)

    def _embed(self, op: str, args: list[Operand | _Constant], scalar: Scalar) -> Value | None:
        """Emit the operation with a broadcast memory operand, if there is such an instruction."""
        if not self._broadcasts(scalar) or len(args) != 2:
            return None
        scalars = [a for a in args if isinstance(a, BroadcastOperand) and a.scalar == scalar]
        others = [a for a in args if isinstance(a, Value)]
        name = _EMBEDDED.get(op, {}).get(f"{scalar.kind}{scalar.bytes}")
        if name is None or len(scalars) != 1 or len(others) != 1 or self.absorbs(op, scalar):
            return None
        memory, other = scalars[0], self.convert(others[0], scalar).name
        if op == "add" and scalar in self.ones:
            return Value(self._from_memory(_FUSED[scalar.bytes], memory, self.ones[scalar], other), scalar)
        return Value(self._from_memory(name, memory, other), scalar)

    def _broadcasts(self, scalar: Scalar) -> bool:
        """Return True if instructions on these vectors can broadcast a memory operand."""
        return self.target.embedded_broadcast and self.width * scalar.bytes == self.target.vector_bytes

    def _from_memory(self, code: str, memory: BroadcastOperand, *registers: str) -> str:
        """Emit an instruction on a scalar in memory and a register; a second register is the addend of a fused multiply-add."""
        ir, place = memory.scalar.vector(self.width), f"ptr elementtype({memory.scalar.ir}) {memory.pointer}"
        constraints = "=v,*m,v" + ",0" * (len(registers) - 1)
        operands = ", ".join(f"{ir} {name}" for name in registers)
        return self.em.let(f'call {ir} asm "{code} $1{{1to{self.width}}}, $2, $0", "{constraints}"({place}, {operands})')

    def multiply_accumulate(self, add: Expr, mul: Expr, acc: Value, a: Operand, b: Value) -> str | None:
        """Emit acc + a·b as one fused instruction (one rounding less); None unless ⊕ and ⊗ are + and × of floats and the target has one."""
        scalar = acc.scalar
        if scalar is None or scalar.kind != "f" or not self.target.fma:
            return None
        if (add.op, mul.op) != ("add", "mul") or any({x.op for x in e.args} != {"var"} or len(set(e.args)) < 2 for e in (add, mul)):
            return None
        if isinstance(a, BroadcastOperand) and self._broadcasts(scalar):
            return self._from_memory(_FUSED[scalar.bytes], a, b.name, acc.name)
        ir = scalar.vector(self.width)
        return self.em.call(f"fma.{scalar.overload(self.width)}", ir, (ir, self.convert(a, scalar).name), (ir, b.name), (ir, acc.name))

    def combine(self, add: Sequence[Expr], scalars: Sequence[Scalar], old: Iterable[str], new: Iterable[str]) -> list[str]:
        """Emit old ⊕ new, with sums as sums."""
        with self.plain_sums():
            return [v.name for v in self.evaluate(add, values(old, scalars), values(new, scalars), scalars)]

    def accumulate(
        self, add: Sequence[Expr], mul: Sequence[Expr], scalars: Sequence[Scalar], old: Sequence[str], a: Sequence[Operand], b: list[Value]
    ) -> list[str]:
        """Emit old ⊕ a⊗b, fused where possible."""
        if len(scalars) == 1:
            fused = self.multiply_accumulate(add[0], mul[0], Value(old[0], scalars[0]), a[0], b[0])
            if fused is not None:
                return [fused]
        return self.combine(add, scalars, old, [v.name for v in self.evaluate(mul, a, b, scalars)])


def values(names: Iterable[str], scalars: Iterable[Scalar]) -> list[Value]:
    """Return named registers as values of these types."""
    return list(map(Value, names, scalars))


def _widest(scalars: Sequence[Scalar | None]) -> Scalar | None:
    """Return the common type of several operands, ignoring conditions."""
    found = {s.dtype for s in scalars if s is not None}
    return scalar_type(widest(found)) if found else None


def constants(low: Lowering, scalars: Sequence[Scalar], element: Sequence[Any]) -> list[Value]:
    """Return a constant element in all lanes."""
    return [Value(s.constant(x, low.width), s) for s, x in zip(scalars, element, strict=True)]


def chosen(low: Lowering, scalars: Sequence[Scalar], condition: str, yes: Sequence[Value], no: Sequence[Value]) -> list[Value]:
    """Return one of two elements in each lane, by a condition."""
    return [Value(low.select(condition, s, x.name, y.name), s) for s, x, y in zip(scalars, yes, no, strict=True)]


def load_elements(low: Lowering, scalars: Sequence[Scalar], arrays: Sequence[str], i: str | int) -> list[Value]:
    """Load one vector of each component's array, from place i on."""
    em = low.em
    return [Value(em.get(s, a, i, low.width), s) for s, a in zip(scalars, arrays, strict=True)]


def store_elements(low: Lowering, scalars: Sequence[Scalar], arrays: Sequence[str], i: str | int, values: Sequence[Value]) -> None:
    """Store one vector of each component's array, from place i on."""
    for s, a, value in zip(scalars, arrays, values, strict=True):
        low.em.put(s, value.name, a, i, low.width)


def spread(low: Lowering, scalars: Sequence[Scalar], element: Sequence[Value]) -> list[Value]:
    """Copy single elements to all lanes."""
    return [Value(low.em.splat(x.name, s, low.width), s) for s, x in zip(scalars, element, strict=True)]


def encoded(low: Lowering, rep: Representation, raw: Iterable[str]) -> list[Value]:
    """Return an outer element as an inner element."""
    return [Value(rep.encode(low, c, x), s) for c, (x, s) in enumerate(zip(raw, rep.inner, strict=True))]


def empty_sums(scalars: Sequence[Scalar], zero: Sequence[Any], width: int, *, witness: bool = False) -> list[Carried]:
    """Return the zero as values that a loop carries, with the witness −1 on request."""
    numbers = [*zip(scalars, zero, strict=True), *[(I32, -1)] * witness]
    return [(s.vector(width), s.constant(x, width)) for s, x in numbers]


Via = tuple[str, Sequence[str]]
"""The witness's address, and vectors of i32 to store there, one per candidate."""


def improve(
    low: Lowering, add: Sequence[Expr], scalars: Sequence[Scalar], extremum: str | None, old: Sequence[Value], candidate: Sequence[Value]
) -> tuple[list[Value], Callable[[], str]]:
    """Return old ⊕ candidate, and a function that emits the mask of strict improvements; `extremum` is set if ⊕ is only min or max."""
    new = low.evaluate(add, old, candidate, scalars)
    return new, lambda: improved(low, scalars, extremum, old, new)


def improved(low: Lowering, scalars: Sequence[Scalar], extremum: str | None, old: Sequence[Value], new: Sequence[Value]) -> str:
    """Return a mask where `new` = old ⊕ something is strictly better than old."""
    order = {"min": "lt", "max": "gt", None: "ne"}[extremum]
    return low.any_of([low.compare(order, s, v.name, o.name) for s, v, o in zip(scalars, new, old, strict=True)])


def take_in(low: Lowering, rep: Representation, sums: Sequence[str], a: Sequence[Operand], b: list[Value], code: str = "") -> list[str]:
    """Emit sums ⊕ a⊗b of inner elements; with a `code`, the last sum is the winner's, and becomes `code` where this term wins."""
    if not code:
        return low.accumulate(rep.add, rep.mul, rep.inner, sums, a, b)
    candidate = low.evaluate(rep.mul, a, b, rep.inner)
    with low.plain_sums():
        new, is_better = improve(low, rep.add, rep.inner, rep.extremum, values(sums, rep.inner), candidate)
    return [*(v.name for v in new), low.select(is_better(), I32, code, sums[-1])]


def merge(low: Lowering, rep: Representation, sums: Sequence[str], threshold: str, places: Sequence[str], via: Via | None) -> None:
    """Emit C ← C ⊕ sums of inner elements."""
    candidate = [Value(rep.decode(low, c, x, threshold), s) for c, (x, s) in enumerate(zip(sums, rep.outer, strict=False))]
    update(low, rep, [candidate], places, via)


def update(low: Lowering, rep: Representation, candidates: Sequence[Sequence[Value]], places: Sequence[str], via: Via | None) -> None:
    """Emit C ← C ⊕ candidate for each candidate in turn; `places` has one address per component."""
    em, width = low.em, low.width
    value = [Value(em.load_to_choose(s.vector(width), p, s.bytes), s) for s, p in zip(rep.outer, places, strict=True)]
    better = []
    for candidate in candidates:
        value, is_better = improve(low, rep.add, rep.outer, rep.extremum, value, candidate)
        if via is not None:
            better.append(is_better())
    for v, scalar, place in zip(value, rep.outer, places, strict=True):
        em.store(scalar.vector(width), v.name, place, scalar.bytes)
    if via is not None:
        to, (code, *later) = via
        for condition, winner in zip(better[1:], later, strict=True):
            code = low.select(condition, I32, winner, code)
        store_where(low, low.any_of(better), to, code)


def store_where(low: Lowering, condition: str, place: str, code: str) -> None:
    """Store a vector of witnesses under a mask."""
    em, ir = low.em, I32.vector(low.width)
    if low.target.masks and low.width > 1:
        em.masked_store(I32, low.width, code, place, condition)
    else:
        em.store(ir, low.select(condition, I32, code, em.load_to_choose(ir, place, 4)), place, 4)
