"""What a semiring is: two operations, their identities, and where they come from."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from semiring.algebra.agreement import disagreements
from semiring.algebra.carrier import Carrier, carrier_of
from semiring.algebra.elements import DTYPES
from semiring.algebra.expression import Expr, Program, condition_on, const, node, where
from semiring.algebra.tracing import Recording, record
from semiring.common.errors import DTypeError, LawError, SemiringError, TraceError
from semiring.common.forks import cached_property

__all__ = ["Program", "Semiring", "require_semiring"]


_OBJECT = np.dtype(object)


@dataclass(frozen=True, repr=False, eq=False)
class Semiring:
    """A semiring (S, ⊕, ⊗, 0, 1), defined by plain Python callables on scalars.

    Parameters
    ----------
    name : str
    add, mul : callable
        a ⊕ b and a ⊗ b of two elements: two scalars, or two tuples of scalars (structured elements) that give a tuple.
        They may use operators, ``if``/``else``, ``and``/``or``/``not``, ``min``, ``max``, ``abs`` and the functions of `semiring.ops`. They
        are functions of their operands alone, have a value for all elements, and cannot ask for the type of one.
    zero, one : scalar or tuple
        The identity of ⊕ (and annihilator of ⊗: "no edge") and the identity of ⊗. ``math.inf`` stands for the largest value
        of an integer dtype, ``-math.inf`` for the smallest.
    star : callable, optional
        a* = 1 ⊕ a ⊕ a² ⊕ … where it exists; it may raise `DivergenceError` or ZeroDivisionError where it does not. The
        closure of a semiring without it needs 1 ⊕ a = 1 at every pivot.
    domain : optional
        The carrier: an interval ``(low, high)``, a finite set, or a predicate on one element; for structured elements a tuple
        of one of these (or None) a component, or a predicate on the tuple. The laws are checked on it, and elements outside
        are refused. Without it, every finite number is an element, and those infinities that are `zero` or `one`.
        NaN is outside every carrier.
    witness : bool
        Whether products also tell which k won; set by `with_witness`.

    Attributes
    ----------
    carrier : Carrier
        The domain, made explicit.

    Raises
    ------
    SemiringError
        Where an argument is not what it says here, or `zero` or `one` lies outside the domain.

    Notes
    -----
    The callables are recorded here, when the semiring is made, and tried beside the recording on a few hundred pairs of elements. All
    dtypes are computed with what was recorded, whatever becomes of the callables' surroundings; object arrays run the callables
    themselves, also those that cannot be recorded. Two semirings are equal if the same was recorded of both (of those that cannot be
    recorded, if the callables are the same), and their other arguments are equal (0 and False are not equal here).

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
    carrier: Carrier = field(init=False)
    _recordings: Mapping[str, Recording] = field(init=False)
    _program: Program | str = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SemiringError(f"the name of a semiring is a text, not {self.name!r}")
        if not callable(self.add) or not callable(self.mul) or not (self.star is None or callable(self.star)):
            raise SemiringError(f"{self.name}: add and mul must be callables of two elements, and star a callable of one or None")
        for name in ("zero", "one"):
            object.__setattr__(self, name, _identity(getattr(self, name), f"{self.name}: {name}"))
        width = [len(v) if isinstance(v, tuple) else 1 for v in (self.zero, self.one)]
        if width[0] != width[1]:
            raise SemiringError(f"{self.name}: zero {self.zero!r} and one {self.one!r} are not elements of one kind")
        try:
            carrier, domain = carrier_of(self.domain, self.zero, self.one)
        except SemiringError as error:
            raise SemiringError(f"{self.name}: {error}") from None
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "carrier", carrier)
        for name, value in (("zero", self.zero), ("one", self.one)):
            try:
                inside = carrier.tests(value)
            except Exception as error:  # whatever the caller's predicate raises is to be reported as its own
                raise SemiringError(f"{self.name}: the domain raises {type(error).__name__} for {name} {value!r}: {error}") from error
            if not inside:
                raise SemiringError(f"{self.name}: {name} {value!r} lies outside the domain, {carrier}; widen the domain")
        self._record()

    def _record(self) -> None:
        """Record ⊕, ⊗ and star, or why that cannot be."""
        recordings, reasons = dict[str, Recording](), dict[str, str]()
        for name, operands in (("add", 2), ("mul", 2), ("star", 1)):
            function = getattr(self, name)
            if function is not None:
                try:
                    recordings[name] = record(function, operands, self.components, what=f"{self.name}.{name}", partial=name == "star")
                except TraceError as error:
                    reasons[name] = str(error)  # the error itself would keep the frames of the callable alive
        object.__setattr__(self, "_recordings", recordings)
        if not reasons:
            self._compose()
            reasons = disagreements(self)
        if reasons:
            object.__setattr__(self, "_program", next(iter(reasons.values())))
            object.__setattr__(self, "_recordings", {name: r for name, r in recordings.items() if name not in reasons})

    def _compose(self) -> None:
        """Make the program of the recordings."""
        add, mul, star = self._recordings["add"], self._recordings["mul"], self._recordings.get("star")
        parts = (None, const(False)) if star is None else (star.results, self._without_star(star))
        object.__setattr__(self, "_program", Program(add.results, mul.results, *parts))

    def _without_star(self, star: Recording) -> Expr:
        """Whether a* does not exist: where it is undefined, NaN, or an infinity that is no element."""
        if self.on_truth_values:
            return star.undefined
        undefined, joint = star.undefined, self.carrier.joint
        element = None if joint is None or joint.recorded is None else condition_on(joint.recorded, star.results)
        for c, result in enumerate(star.results):
            undefined = where(node("ne", result, result), const(True), undefined)
            for infinity, beyond in ((math.inf, "gt"), (-math.inf, "lt")):
                # The sign, because 0 stands for −∞ where there are no negative numbers.
                infinite = where(node(beyond, result, const(0)), node("eq", result, const(infinity)), const(False))
                if element is not None:
                    undefined = where(where(infinite, element, const(True)), undefined, const(True))
                elif infinity not in self.carrier.infinite(c):
                    undefined = where(infinite, const(True), undefined)
        return undefined

    @cached_property
    def components(self) -> int:
        """How many scalars an element has: 1, or the length of the tuple."""
        return len(self.zero) if isinstance(self.zero, tuple) else 1

    @property
    def on_truth_values(self) -> bool:
        """Whether elements are truth values and False is the zero, so that integers 0 and 1 can be read as them."""
        return self.zero is False

    @property
    def program(self) -> Program:
        """The recorded operations.

        Raises
        ------
        TraceError
            Naming what cannot be recorded, and what to write instead.
        """
        if isinstance(self._program, str):
            raise TraceError(self._program)
        return self._program

    def running(self, kinds: tuple[np.dtype[Any], ...]) -> tuple[Any, ...]:
        """The callables, where they run themselves, on object arrays: what is remembered about such is to be keyed by them too."""
        return (self.add, self.mul, self.star) if _OBJECT in kinds else ()

    def recorded(self, name: str) -> Recording | None:
        """What was recorded of ``add``, ``mul`` or ``star``; None where it cannot be, or there is none."""
        return self._recordings.get(name)

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

        Examples
        --------
        >>> from semiring.algebra.catalogue import MIN_PLUS
        >>> MIN_PLUS.identities("int16")
        ((32767,), (0,))
        """
        kinds = self.dtypes(dtypes)
        found = self._identities.get(kinds)
        if found is None:
            zero, one = (v if isinstance(v, tuple) else (v,) for v in (self.zero, self.one))
            if any(kind.kind != "O" for kind in kinds):  # object arrays run the callables themselves: nothing need be recorded
                try:
                    zero, one = self.program.identities(zero, one, kinds)
                except DTypeError as error:
                    raise DTypeError(f"{self.name} has no meaning in {', '.join(dict.fromkeys(map(str, kinds)))}: {error}") from None
            self._identities[kinds] = found = zero, one
        return found

    def _has(self, dtypes: tuple[Any, ...]) -> bool:
        """Whether identities in them are known, as they nearly always are."""
        try:
            return dtypes in self._identities
        except TypeError:  # a list in the place of a dtype
            return False

    @cached_property
    def _identities(self) -> dict[tuple[np.dtype[Any], ...], tuple[tuple[Any, ...], tuple[Any, ...]]]:
        return {}

    def dtypes(self, dtypes: Any) -> tuple[np.dtype[Any], ...]:
        """`dtypes` as one NumPy dtype a component, each one that the library computes with, in native byte order.

        Parameters
        ----------
        dtypes : dtype or sequence of dtype
            One for each component (a single one serves all).

        Raises
        ------
        DTypeError
            For another number of them, what is no dtype, and one that is not supported.

        Examples
        --------
        >>> from semiring.algebra.catalogue import DISTANCE_COUNT
        >>> DISTANCE_COUNT.dtypes("float32")
        (dtype('float32'), dtype('float32'))
        """
        if type(dtypes) is tuple and self._has(dtypes):
            return dtypes
        parts = dtypes if isinstance(dtypes, list | tuple) else (dtypes,) * self.components
        if len(parts) != self.components:
            raise DTypeError(f"{self.name} has {self.components} components, but {len(parts)} dtypes were given")
        try:
            kinds = tuple(np.dtype(d).newbyteorder("=") for d in parts)
        except TypeError as error:
            raise DTypeError(f"{dtypes!r} is no dtype: {error}") from None
        for kind in kinds:
            if kind not in DTYPES and kind.kind != "O":
                raise DTypeError(f"dtype {kind} is not supported; use one of {', '.join(map(str, DTYPES))}, or object for exact entries")
        return kinds

    @cached_property
    def supported_dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtypes, one for all components, in which the semiring has a meaning.

        Examples
        --------
        >>> from semiring.algebra.catalogue import LOG
        >>> [str(dtype) for dtype in LOG.supported_dtypes]
        ['float32', 'float64']
        """

        def supports(dtype: np.dtype[Any]) -> bool:
            try:
                self.identities(dtype)
            except DTypeError:
                return False
            return True

        return tuple(filter(supports, DTYPES))

    def with_witness(self) -> Semiring:
        """The same semiring, marked so that its products also tell which k won.

        The mark belongs to the product, not to the algebra: matrices stay ordinary, and ``matmul(a, b, S.with_witness())`` is
        ``matmul(a, b, S, witness=True)``.

        Raises
        ------
        LawError
            Where ⊕ is not selective (a ⊕ b is neither a nor b for some a, b), so that no single k wins.

        Examples
        --------
        >>> from semiring.algebra.catalogue import MAX_MIN
        >>> MAX_MIN.with_witness()
        <semiring max-min: 0 = -inf, 1 = inf, with witness>
        """
        if not self.selects:
            self._require_selective()
        return self.marked(True)

    def marked(self, witness: bool) -> Semiring:
        """The same semiring, as it was recorded, with or without the mark; `dataclasses.replace` would record its callables anew."""
        other = copy.copy(self)
        object.__setattr__(other, "witness", witness)
        return other

    def narrowed(self, domain: Any) -> Semiring:
        """The same semiring, as it was recorded, on another carrier."""
        other = copy.copy(self)
        carrier, plain = carrier_of(domain, self.zero, self.one)
        object.__setattr__(other, "domain", plain)
        object.__setattr__(other, "carrier", carrier)
        if not isinstance(self._program, str):
            other._compose()
        return other

    @cached_property
    def selects(self) -> bool:
        """Whether ⊕ is recorded as one that always gives one of its operands; others may do so too."""
        try:
            return self.program.selects
        except TraceError:
            return False

    def _require_selective(self) -> None:
        from semiring.algebra.laws import selective_counterexample

        found = selective_counterexample(self)
        if found is not None:
            a, b, c = found
            raise LawError(
                f"{self.name} has no witness: ⊕ is not selective ({a!r} ⊕ {b!r} = {c!r}), so no single k wins; multiply without a witness"
            )

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        operations = (self.add, self.mul, self.star) if isinstance(self._program, str) else (self._program,)
        # repr tells 0 from False and from -0.0, which == does not and a generated kernel must.
        return (self.name, *operations, repr(self.zero), repr(self.one), self.carrier, self.witness)

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Semiring):
            return NotImplemented
        return self is other or self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # what was recorded goes along, what is derived is derived again

    def __repr__(self) -> str:
        return f"<semiring {self.name}: 0 = {self.zero!r}, 1 = {self.one!r}{', with witness' if self.witness else ''}>"

    def _repr_html_(self) -> str:
        from semiring.algebra.views import semiring_html

        return semiring_html(self)


def require_semiring(value: Any) -> None:
    """Refuse what was passed in the place of a semiring and is none."""
    if not isinstance(value, Semiring):
        raise SemiringError(f"semiring is {value!r}; pass a Semiring such as semiring.MIN_PLUS")


def _identity(value: Any, what: str) -> Any:
    """An identity as plain Python numbers, or the caller's own objects."""
    if isinstance(value, tuple):
        if len(value) < 2 or any(isinstance(v, tuple | list) for v in value):
            raise SemiringError(f"{what} {value!r} must be a scalar, or a flat tuple of two or more scalars")
        return tuple(_identity(v, what) for v in value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, list | np.ndarray):
        raise SemiringError(f"{what} {value!r} is no element; write a scalar or a tuple of scalars")
    if isinstance(value, float) and value != value:
        raise SemiringError(f"{what} is NaN, which is no element of any semiring")
    return value
