"""What a semiring is: two operations, their identities, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from semiring.algebra.elements import DTYPES, element
from semiring.algebra.errors import DTypeError, LawError, SemiringError
from semiring.algebra.expression import Expr, const, nodes
from semiring.algebra.tracing import record

__all__ = ["Program", "Semiring"]

_ARITHMETIC = {"add", "sub", "mul", "div", "floordiv", "mod", "neg", "abs"}
_REAL = {"div", "exp", "expm1", "log", "log1p", "sqrt"}
_BITWISE = {"and", "or", "xor", "invert", "shl", "shr"}


@dataclass(frozen=True)
class Program:
    """The recorded operations of a semiring: for each, one expression a component of its result.

    Attributes
    ----------
    add, mul : tuple of Expr
        a ⊕ b and a ⊗ b; operand 0 is a, operand 1 is b.
    star : tuple of Expr or None
        a*, of operand 0.
    star_undefined : Expr
        Whether a* does not exist (where the callable raises ZeroDivisionError or DivergenceError).
    """

    add: tuple[Expr, ...]
    mul: tuple[Expr, ...]
    star: tuple[Expr, ...] | None
    star_undefined: Expr


@dataclass(frozen=True, repr=False)
class Semiring:
    """A semiring (S, ⊕, ⊗, 0, 1), defined by plain Python callables on scalars.

    Parameters
    ----------
    name : str
    add, mul : callable
        a ⊕ b and a ⊗ b of two elements: two scalars, or two tuples of scalars (structured elements) that give a tuple.
        They are recorded once, at the first compiled use, and may use operators, ``if``/``else``, ``and``/``or``/``not``, ``min``,
        ``max``, ``abs`` and the functions of `semiring.ops`.
    zero, one : scalar or tuple
        The identity of ⊕ (and annihilator of ⊗: "no edge") and the identity of ⊗. ``math.inf`` stands for the largest value
        of an integer dtype.
    star : callable, optional
        a* = 1 ⊕ a ⊕ a² ⊕ … where it exists; it may raise `DivergenceError` or ZeroDivisionError where it does not. The
        closure of a semiring without it needs 1 ⊕ a = 1 at every pivot.
    domain : optional
        The carrier: an interval ``(low, high)``, a finite set, or a predicate on one element; for structured elements a tuple
        of one of these (or None) a component, or a predicate on the tuple. The laws are checked on it, and elements outside
        are refused. NaN is outside every carrier.

    Raises
    ------
    SemiringError
        Where the identities are no elements.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> lukasiewicz = sr.Semiring("lukasiewicz", add=max, mul=lambda a, b: max(a + b - 1, 0), zero=0, one=1, domain=(0, 1))
    >>> sr.matmul(np.array([[0.75, 0.5]]), np.array([[0.5], [1.0]]), lukasiewicz)
    array([[0.5]])
    """

    name: str
    add: Callable[[Any, Any], Any]
    mul: Callable[[Any, Any], Any]
    zero: Any
    one: Any
    star: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    domain: Any = field(default=None, kw_only=True)
    witness: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not callable(self.add) or not callable(self.mul):
            raise SemiringError(f"{self.name}: add and mul must be callables of two elements")
        width = [len(v) if isinstance(v, tuple) else 1 for v in (self.zero, self.one)]
        if width[0] != width[1]:
            raise SemiringError(f"{self.name}: zero {self.zero!r} and one {self.one!r} are not elements of one kind")
        domain = self.domain
        if isinstance(domain, Iterable) and not isinstance(domain, tuple):
            object.__setattr__(self, "domain", frozenset(domain))

    @property
    def components(self) -> int:
        """How many scalars an element has: 1, or the length of the tuple."""
        return len(self.zero) if isinstance(self.zero, tuple) else 1

    @cached_property
    def program(self) -> Program:
        """The recorded operations.

        Raises
        ------
        TraceError
            Naming what cannot be recorded, and what to write instead.
        """
        width = self.components
        add = record(self.add, 2, width, what=f"{self.name}.add").results
        mul = record(self.mul, 2, width, what=f"{self.name}.mul").results
        if self.star is None:
            return Program(add, mul, None, const(False))
        star = record(self.star, 1, width, what=f"{self.name}.star", partial=True)
        return Program(add, mul, star.results, star.undefined)

    def identities(self, dtypes: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """0 and 1 in `dtypes`, one Python number a component.

        Parameters
        ----------
        dtypes : dtype or sequence of dtype
            One for each component (a single one serves all).

        Raises
        ------
        DTypeError
            Where the semiring has no meaning in a dtype.
        """
        kinds = self.dtypes(dtypes)
        zero, one = (v if isinstance(v, tuple) else (v,) for v in (self.zero, self.one))
        operations = {e.op for e in nodes(*self.program.add, *self.program.mul)}
        ordered = not operations & _ARITHMETIC
        try:
            low = tuple(element(v, d, ordered=ordered) for v, d in zip(zero, kinds, strict=True))
            high = tuple(element(v, d, ordered=ordered) for v, d in zip(one, kinds, strict=True))
        except DTypeError as error:
            raise DTypeError(f"{self.name} has no meaning in {_names(kinds)}: {error}") from None
        for value, kind in zip(zero + one, kinds + kinds, strict=True):
            if isinstance(value, bool) and kind.kind not in "bO":
                raise DTypeError(f"{self.name} works on truth values, not on {kind}; use dtype bool")
        for only, refused in ((_REAL, "biu"), (_BITWISE, "f")):
            if operations & only and any(d.kind in refused for d in kinds):
                used, instead = min(operations & only), "float32 or float64" if only is _REAL else "bool or an integer dtype"
                raise DTypeError(f"{self.name} uses {used!r}, which {_names(kinds)} lacks; use {instead}")
        return low, high

    def dtypes(self, dtypes: Any) -> tuple[np.dtype[Any], ...]:
        """`dtypes` as one NumPy dtype a component, each one that the library computes with."""
        parts = dtypes if isinstance(dtypes, list | tuple) else (dtypes,) * self.components
        if len(parts) != self.components:
            raise DTypeError(f"{self.name} has {self.components} components, but {len(parts)} dtypes were given")
        kinds = tuple(np.dtype(d) for d in parts)
        for kind in kinds:
            if kind not in DTYPES and kind.kind != "O":
                raise DTypeError(f"dtype {kind} is not supported; use one of {', '.join(map(str, DTYPES))}, or object for exact entries")
        return kinds

    def with_witness(self) -> Semiring:
        """The same semiring, marked so that its products also tell which k won.

        The mark belongs to the product, not to the algebra: matrices stay ordinary, and ``matmul(a, b, S.with_witness())`` is
        ``matmul(a, b, S, witness=True)``.

        Raises
        ------
        LawError
            Where ⊕ is not selective (a ⊕ b is neither a nor b for some a, b), so that no single k wins.
        """
        from semiring.algebra.laws import selective_counterexample

        found = selective_counterexample(self)
        if found is not None:
            a, b, c = found
            raise LawError(f"{self.name} has no witness: ⊕ is not selective ({a!r} ⊕ {b!r} = {c!r}), so no single k wins")
        return replace(self, witness=True)

    def __repr__(self) -> str:
        return f"<semiring {self.name}: 0 = {self.zero!r}, 1 = {self.one!r}{', with witness' if self.witness else ''}>"

    def _repr_html_(self) -> str:
        from semiring.algebra.html import semiring_html

        return semiring_html(self)


def _names(kinds: tuple[np.dtype[Any], ...]) -> str:
    names = dict.fromkeys(map(str, kinds))
    return ", ".join(names)
