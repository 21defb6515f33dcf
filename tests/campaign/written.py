"""⊗ written at random from the operations that can be recorded, on scalars and on tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.campaign.formulas import BITS, REAL, Formula, Range, const, of, operations, ranges, var
from tests.campaign.subjects import FLOATS, INF, SIGNED, UNSIGNED, A, B, Draw, Rng, Subject, among, defined, lexicographic, whole

__all__ = ["draw_tuples", "draw_written"]


class _Writer:
    """Writes formulas of elements of one kind, from the operations that can be recorded."""

    def __init__(self, rng: Rng, kind: str, components: Sequence[int], *, real: bool = False, bits: bool = True) -> None:
        self.rng, self.kind, self.components, self.real, self.bits = rng, kind, components, real, bits

    def pick(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def constant(self) -> Any:
        if self.kind == "f":
            return float(self.rng.integers(-8, 9)) / self.pick(1, 1, 2, 4)
        return int(self.rng.integers(0 if self.kind == "u" else -5, 8))

    def leaf(self) -> Formula:
        if self.rng.random() < 0.2:
            return const(bool(self.rng.integers(2)) if self.kind == "b" else self.constant())
        return var(int(self.rng.integers(2)), int(self.pick(*self.components)))

    def formula(self, depth: int) -> Formula:
        if depth == 0 or self.rng.random() < 0.1:
            return self.leaf()
        x, y = self.formula(depth - 1), self.formula(depth - 1)
        if self.kind == "b":
            op = self.pick("and", "or", "xor", "where")
            return of("where", x, y, self.formula(depth - 1)) if op == "where" else of(op, x, y)
        op = self.pick(*self._choices())
        match op:
            case "where":
                other = self.formula(depth - 1)
                condition = of(self.pick("lt", "le", "gt", "ge", "eq", "ne"), x, y)
                if self.rng.random() < 0.3:
                    condition = of(self.pick("both", "either"), condition, of(self.pick("lt", "ge", "eq"), other, y))
                return of("where", condition, x if self.rng.random() < 0.5 else other, y)
            case "neg" | "abs" | "invert":
                return of(op, x)
            case "difference":
                return of("sub", of("max", x, y), of("min", x, y))
            case "floordiv" | "mod":
                divisor = int(self.rng.integers(1, 8))
                return of(op, x, -divisor if self.kind == "i" and self.rng.random() < 0.3 else divisor)
            case "shl" | "shr":
                return of(op, x, int(self.rng.integers(0, 4)))
            case "div":
                return of("div", x, of("add", of("abs", y), self.pick(0.5, 1.0, 3.0)))
            case "exp":
                return of("exp", of("neg", of("abs", x)))
            case "log1p" | "sqrt":
                return of(op, of("abs", x))
            case _:
                return of(op, x, y)

    def _choices(self) -> tuple[str, ...]:
        common = ("add", "add", "mul", "min", "max", "where")
        if self.kind == "f":
            return (*common, "sub", "neg", "abs", *(("div", "exp", "log1p", "sqrt") * 2 if self.real else ()))
        whole = (*common, *(("and", "or", "xor", "shl", "shr") if self.bits else ()), "floordiv", "mod", "difference")
        return whole if self.kind == "u" else (*whole, "sub", "neg", "abs", *(("invert",) if self.bits else ()))


_ADDITIONS: dict[str, tuple[tuple[str, Any], ...]] = {
    "f": (("min", INF), ("max", -INF), ("add", 0)),
    "i": (("min", INF), ("max", -INF), ("add", 0), ("or", 0), ("xor", 0), ("and", -1)),
    "u": (("min", INF), ("max", 0), ("add", 0), ("or", 0), ("xor", 0), ("and", -1)),
    "b": (("or", False), ("and", True), ("xor", False)),
}


def _reach(dtype: np.dtype[Any]) -> int:
    """How large what is computed may become, so that sums of a hundred are exact."""
    return {"uint8": 40, "int16": 200, "uint16": 400, "float32": 1 << 15}.get(str(dtype), 1 << 24)


def draw_written(rng: Rng) -> Subject:
    """⊗ at random; ⊕ one that is associative and commutative, since else a product would depend on the order of its sum."""
    dtype = np.dtype(str(rng.choice(["bool", *FLOATS, *FLOATS, *SIGNED, *UNSIGNED])))
    kind = dtype.kind
    real = kind == "f" and rng.random() < 0.4
    op, zero = _ADDITIONS[kind][rng.integers(len(_ADDITIONS[kind]))]
    high = 3 if dtype == np.uint8 else 9
    low = 0 if kind in "ub" else -high
    writer = _Writer(rng, kind, [0], real=real)
    spacious = rng.random() < 0.9  # else an overflow is likely, and has to be refused
    for _ in range(200):
        mul = writer.formula(int(rng.integers(1, 4)))
        used = operations([mul])
        if not {var(0), var(1)} <= set(_leaves(mul)) or (op in BITS and used & REAL):
            continue
        if kind == "b" or not spacious or _fits(mul, low, high, dtype):
            break
    else:
        mul = of("and" if kind == "b" else "min", A, B)
    draw: Draw = among(False, True) if kind == "b" else whole(low, high)
    if kind == "f":
        scale = float(rng.choice([1, 0.5, 0.25]))
        draw = lambda rng, shape, dtype, scale=scale: rng.integers(low, high + 1, shape) * scale  # noqa: E731 (the drawn scale is kept)
    one = True if kind == "b" else 1
    return defined("written", [str(dtype)], of(op, A, B), mul, zero, one, draw, add_text=op if op in ("min", "max") else "",
                    selective=op in ("min", "max") or (kind == "b" and op != "xor"), closure="")  # fmt: skip


def _leaves(f: Formula) -> list[Formula]:
    return [f] if f.op in ("var", "const") else [leaf for a in f.args for leaf in _leaves(a)]


def _fits(mul: Formula, low: int, high: int, dtype: np.dtype[Any]) -> bool:
    _, inside, _ = ranges([mul], [Range(low, high)], [Range(low, high)])
    return bool(inside.magnitude <= _reach(dtype) and (dtype.kind != "u" or inside.low >= 0))


def draw_tuples(rng: Rng) -> Subject:
    """Tuples: ⊕ the lexicographic minimum or component by component, ⊗ written at random."""
    width = int(rng.integers(2, 4))
    pools = (["float32"], ["float64"], ["int32"], ["int64"], ["float32", "int32"], ["float64", "int64"], ["int32", "int16"])
    pool = pools[rng.integers(len(pools))]
    dtypes = [str(rng.choice(pool)) for _ in range(width)]
    mixed = len(set(dtypes)) > 1
    ordered = rng.random() < 0.5
    muls, adds, zeros = [], [], []
    for c, dtype in enumerate(dtypes):
        kind = np.dtype(dtype).kind
        writer = _Writer(rng, kind, [c] if mixed else range(width), bits=False)
        for _ in range(100):
            mul = writer.formula(int(rng.integers(1, 3)))
            operand = [Range(-5, 5)] * width
            _, inside, _ = ranges([mul], operand, operand)
            if inside.magnitude <= _reach(np.dtype("int16" if "int16" in dtypes else "float32")) and _leaves(mul) != [mul]:
                break
        else:
            mul = of("add", var(0, c), var(1, c))
        muls.append(mul)
        op, zero = ("min", INF) if ordered else _ADDITIONS["f"][rng.integers(3)]
        adds.append(of(op, var(0, c), var(1, c)))
        zeros.append(zero)
    add = lexicographic(width) if ordered else tuple(adds)
    draws = tuple(whole(-5, 5) for _ in range(width))
    return defined("tuples", dtypes, add, tuple(muls), tuple(zeros), (0,) * width, draws, add_text="min" if ordered else "",
                    selective=ordered, closure="")  # fmt: skip
