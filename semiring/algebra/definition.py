"""`Semiring`: two operations and their identities, defined by plain Python callables."""

from __future__ import annotations

import copy
import functools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

from semiring.algebra.equations import law
from semiring.algebra.expression import Expr, const, is_operation, nodes, show
from semiring.algebra.relaxation import relaxed
from semiring.algebra.structure import AlgebraicStructure
from semiring.algebra.tracing import record
from semiring.common.errors import LawError, SemiringError, TraceError, raised_here
from semiring.common.html import code, escape, faint, table

__all__ = ["Semiring"]


@dataclass(frozen=True, repr=False, eq=False)
class Semiring(AlgebraicStructure):
    """A semiring (S, ⊕, ⊗, 0, 1), defined by plain Python callables on scalars.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> def weaken(a, b):
    ...     return max(a + b - 1, 0)
    >>> trust = sr.Semiring("trust", add=max, mul=weaken, zero=0, one=1, domain=(0, 1))
    >>> sr.matmul(np.array([[0.75, 0.5]]), np.array([[0.5], [1.0]]), trust)
    array([[0.5]])

    Parameters
    ----------
    name : str
    add, mul : callable
        a ⊕ b and a ⊗ b of two elements: two scalars, or two tuples of scalars (structured elements) that give a tuple. Operators,
        ``if``/``else``, ``and``/``or``/``not``, ``min``, ``max``, ``abs`` and the functions of `semiring.ops` are allowed. The result
        depends on the values of the operands alone, and exists for all elements.
    zero, one : scalar or tuple
        The identity of ⊕ (and annihilator of ⊗: "no edge") and the identity of ⊗. ``math.inf`` stands for the largest value
        of an integer dtype, ``-math.inf`` for the smallest.
    star : callable, optional
        a* = 1 ⊕ a ⊕ a² ⊕ …; raises `DivergenceError` or ZeroDivisionError if the sum diverges. Without a star, a closure needs
        1 ⊕ a = 1 at every pivot.
    domain : optional
        The carrier: an interval ``(low, high)``, a ``range``, a finite set, or a predicate on one element. For structured elements, a
        predicate on the tuple, or a tuple with one of these (or None) a component. The laws are checked on the carrier. Other elements
        are refused, and NaN always is. By default, the finite numbers, and each infinity that is `zero` or `one`; for sums and products
        modulo p < 2³¹, the integers from 0 to p − 1.
    from_weight : callable, optional
        For structured elements: makes an element of an ordinary weight, such as ``lambda w: (w, 1)``, so that graphs with single numbers
        as weights can be closed. It is recorded like ⊕.
    witness : bool
        Products also return the winning k of each entry; set by `with_witness`.

    Attributes
    ----------
    carrier : Carrier
        The domain, made explicit.
    recorded_from_weight : tuple
        The expression of each component of `from_weight`.

    Raises
    ------
    SemiringError
        For an invalid argument, and if `zero` or `one` lies outside the domain.

    Notes
    -----
    The constructor records the callables as expressions, and all dtypes are computed with these. Object arrays run the callables
    themselves, recordable or not. Semirings with equal recordings and equal other arguments are equal. `check` tries the laws. More: How it
    works, Generator.
    """

    from_weight: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    witness: bool = field(default=False, kw_only=True)
    recorded_from_weight: tuple[Expr, ...] = field(default=(), init=False)
    numbered: ClassVar[list[Semiring]] = []

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.from_weight is None:
            return
        if self.components == 1 or not callable(self.from_weight):
            raise SemiringError(f"{self.name}: from_weight must be a callable that makes a tuple, as zero and one are, of a number")
        recorded = record(self.from_weight, 1, 1, what=f"{self.name}.from_weight", results=self.components).results
        if not any(e.op == "var" for e in nodes(*recorded)):
            raise SemiringError(f"{self.name}: from_weight gives the same element for every number")
        object.__setattr__(self, "recorded_from_weight", recorded)

    @raised_here
    def with_witness(self) -> Semiring:
        """Return the semiring with a mark: its products also return the winning k of each entry.

        Matrices stay ordinary: ``matmul(a, b, S.with_witness())`` is ``matmul(a, b, S, witness=True)``.

        Examples
        --------
        >>> from semiring.algebra.catalogue import MAX_MIN
        >>> MAX_MIN.with_witness()
        <semiring max-min: 0 = -inf, 1 = inf, with witness>

        Raises
        ------
        LawError
            If ⊕ is not selective: a ⊕ b is neither a nor b for some elements, and no single k wins.
        """
        self.require_selective()
        return self.marked(True)

    def marked(self, witness: bool) -> Semiring:
        """Return the semiring with or without the mark of `with_witness`, without another recording.

        Examples
        --------
        >>> from semiring import TROPICAL, TROPICAL_ARGMIN
        >>> TROPICAL_ARGMIN.marked(False) == TROPICAL
        True
        """
        if witness is self.witness:
            return self
        other = copy.copy(self)
        object.__setattr__(other, "witness", witness)
        return other

    @raised_here
    def smooth(self, temperature: float) -> Semiring:
        """Return the relaxation of min-plus or max-plus: a sum of exponentials under a logarithm, with a gradient for every term.

        For min-plus, a ⊕ b = −T log(e^(−a/T) + e^(−b/T)), which tends to min(a, b) for T → 0. For max-plus it is T log(e^(a/T) + e^(b/T)).

        Examples
        --------
        >>> from semiring.algebra.catalogue import MIN_PLUS
        >>> MIN_PLUS.smooth(0.5)
        <semiring min-plus at temperature 0.5: 0 = inf, 1 = 0>
        >>> MIN_PLUS.smooth(0) is MIN_PLUS
        True

        Parameters
        ----------
        temperature : float
            T, in the unit of the weights: 0, or from 1e-30 to 1e30.

        Raises
        ------
        SemiringError
            For another semiring or another temperature. A closure raises `DivergenceError` if the sum over all walks diverges.
        """
        least, most = (is_operation(self.program.add[0], (name,)) for name in ("min", "max"))
        if self.components > 1 or not (least or most) or not is_operation(self.program.mul[0], ("add",)) or self.witness:
            raise SemiringError(f"{self.name} has no relaxation; min-plus and max-plus have one")
        if not (isinstance(temperature, Real) and (temperature == 0 or 1e-30 <= temperature <= 1e30)):
            raise SemiringError(f"temperature is {temperature!r}; it must be 0, or a number from 1e-30 to 1e30")
        if temperature == 0:
            return self
        torch: Any = sys.modules.get("torch")  # its compiler cannot follow a recording
        make = _relaxation if torch is None else torch.compiler.disable(_relaxation)
        return make(self, float(temperature), least=least)

    def number(self) -> int:
        """Return the number that stands for this object in this process, and keep it, where another library takes no objects.

        Examples
        --------
        >>> from semiring import MAX_MIN
        >>> Semiring.numbered[MAX_MIN.number()]
        <semiring max-min: 0 = -inf, 1 = inf>
        """
        if not any(other is self for other in Semiring.numbered):
            Semiring.numbered.append(self)  # maybe twice, by two threads: the first one counts
        return next(i for i, other in enumerate(Semiring.numbered) if other is self)

    def require_selective(self) -> None:
        """Refuse a ⊕ that is not selective, because no single k wins.

        Examples
        --------
        >>> from semiring import MAX_MIN
        >>> MAX_MIN.require_selective()

        Raises
        ------
        LawError
        """
        found = None if self.selects else law(self, None, "selective").counterexample
        if found is not None:
            (_, a), (_, b) = found.elements
            raise LawError(
                f"{self.name} has no witness: ⊕ is not selective ({a!r} ⊕ {b!r} = {found.left!r}), so no single k wins; compute "
                f"without a witness"
            )

    def _meaning(self) -> tuple[Any, ...]:
        return (*super()._meaning(), self.recorded_from_weight, self.witness)

    def __repr__(self) -> str:
        return f"<semiring {self.name}: 0 = {self.zero!r}, 1 = {self.one!r}{', with witness' if self.witness else ''}>"

    def _repr_html_(self) -> str:
        rows = [
            ("a ⊕ b", self._shown("add")),
            ("a ⊗ b", self._shown("mul")),
            ("0", code(repr(self.zero)) + self._in_integers()),
            ("1", code(repr(self.one))),
            ("a*", self._shown_star()),
            *([("a weight a", code(f"({', '.join(map(show, self.recorded_from_weight))})"))] if self.from_weight is not None else []),
            ("elements", code(self.carrier)),
            ("properties", self._shown_properties()),
        ]
        title = f"semiring {escape(self.name)}" + (" with witness" if self.witness else "")
        return table(title, ((faint(name), text) for name, text in rows))

    def _in_integers(self) -> str:
        extremes = {math.inf: "largest", -math.inf: "smallest"}
        if self.components > 1 or self.zero not in extremes or not any(d.kind == "i" for d in self.supported_dtypes):
            return ""
        return f" {faint(f'(in an integer dtype: its {extremes[self.zero]} value)')}"

    def _shown(self, operation: str) -> str:
        try:
            return self._expressions(getattr(self.program, operation))
        except TraceError as error:
            return faint(str(error))

    def _shown_star(self) -> str:
        if self.star is None:
            return f"1 where 1 ⊕ a = 1 {faint('(elsewhere the closure diverges)')}"
        star = self.recordings.get("star")
        if star is None:
            return faint("a callable that cannot be recorded")
        text = self._expressions(star.results)
        return text if star.undefined is const(False) else f"{text} unless {code(show(star.undefined, self.components))}"

    def _expressions(self, roots: tuple[Expr, ...]) -> str:
        text = ", ".join(show(e, self.components) for e in roots)
        return code(f"({text})" if self.components > 1 else text)

    def _shown_properties(self) -> str:
        found = []
        for name in ("idempotent", "selective"):
            try:
                result = law(self, None, name)
            except SemiringError as error:
                return faint(str(error))
            words = {"passed": name, "refuted": f"not {name}", "untested": f"{name}: untested"}[result.status]
            found.append(f"<span title='{escape(result.evidence)}'>{words}</span>")
        return ", ".join(found)


@functools.lru_cache(maxsize=256)
def _relaxation(semiring: Semiring, temperature: float, *, least: bool) -> Semiring:
    add, star = relaxed(-1 / temperature if least else 1 / temperature)
    name = f"{semiring.name} at temperature {temperature:g}"
    return Semiring(name, add, semiring.mul, semiring.zero, semiring.one, star=star, domain=semiring.domain)


Semiring.number._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch.compile calls it once
Semiring.smooth.__dict__.update(
    _torchdynamo_disable=True,
    _torchdynamo_disable_msg="torch.compile cannot follow a recording; make the relaxation outside, or without fullgraph",
)
Semiring.__init__ = raised_here(Semiring.__init__)  # type: ignore[method-assign]  # `dataclass` writes it
