"""`AlgebraicStructure`: operations, identities and carrier (S, ⊕, ⊗, 0, 1), without the laws."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from semiring.algebra.carrier import Carrier, carrier_of
from semiring.algebra.elements import COMPUTED_IN, DTYPES
from semiring.algebra.modular import modulus
from semiring.algebra.program import Program, compose, disagreements
from semiring.algebra.tracing import Trace, record
from semiring.common.errors import DTypeError, SemiringError, TraceError
from semiring.common.forks import cached_property

__all__ = ["AlgebraicStructure"]

_OBJECT = np.dtype(object)


@dataclass(frozen=True, repr=False, eq=False)
class AlgebraicStructure:
    """Two operations with their identities on a carrier, recorded by the constructor; see `Semiring`.

    `carrier` is the domain, made explicit. `recordings` has the traces of ``add``, ``mul`` and ``star`` that could be recorded.
    """

    name: str
    add: Callable[[Any, Any], Any]
    mul: Callable[[Any, Any], Any]
    zero: Any
    one: Any
    star: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    domain: Any = field(default=None, kw_only=True)
    carrier: Carrier = field(init=False)
    recordings: Mapping[str, Trace] = field(init=False)
    _program: Program | str = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SemiringError(f"the name of a semiring must be a text, not {self.name!r}")
        if not callable(self.add) or not callable(self.mul) or not (self.star is None or callable(self.star)):
            raise SemiringError(f"{self.name}: add and mul must be callables of two elements, and star a callable of one or None")
        for name in ("zero", "one"):
            object.__setattr__(self, name, _identity(getattr(self, name), f"{self.name}: {name}"))
        width = [len(v) if isinstance(v, tuple) else 1 for v in (self.zero, self.one)]
        if width[0] != width[1]:
            raise SemiringError(f"{self.name}: zero {self.zero!r} and one {self.one!r} must have the same number of components")
        try:
            carrier, domain = carrier_of(self.domain, self.zero, self.one)
        except SemiringError as error:
            raise SemiringError(f"{self.name}: {error}") from None
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "carrier", carrier)
        for name, value in (("zero", self.zero), ("one", self.one)):
            try:
                inside = carrier.tests(value)
            except Exception as error:  # of the caller's predicate
                raise SemiringError(f"{self.name}: the domain raises {type(error).__name__} for {name} {value!r}: {error}") from error
            if not inside:
                raise SemiringError(f"{self.name}: {name} {value!r} lies outside the domain, {carrier}; widen the domain")
        self._record()

    def _record(self) -> None:
        """Record ⊕, ⊗ and star, or the reasons against."""
        recordings, reasons = dict[str, Trace](), dict[str, str]()
        for name, operands in (("add", 2), ("mul", 2), ("star", 1)):
            function = getattr(self, name)
            if function is not None:
                try:
                    recordings[name] = record(function, operands, self.components, what=f"{self.name}.{name}", partial=name == "star")
                except TraceError as error:
                    reasons[name] = str(error)  # the error itself would keep the frames of the callable alive
        program = None
        if self.domain is None and {"add", "mul"} <= recordings.keys():
            p = modulus(recordings["add"].results, recordings["mul"].results)
            if p is not None and (residues := carrier_of(range(p), self.zero, self.one)[0]).contains(self.zero):
                object.__setattr__(self, "carrier", residues)
        if not reasons:
            program = compose(recordings, self.carrier, truth_values=self.on_truth_values)
            callables = {name: getattr(self, name) for name in recordings}
            differ = disagreements(program, callables, *self._identity_parts, self.carrier)
            reasons = {name: f"{self.name}.{name}: {why}" for name, why in differ.items()}
        object.__setattr__(self, "_program", next(iter(reasons.values()), program))
        object.__setattr__(self, "recordings", {name: r for name, r in recordings.items() if name not in reasons})

    @property
    def _identity_parts(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        zero, one = (v if isinstance(v, tuple) else (v,) for v in (self.zero, self.one))
        return zero, one

    @cached_property
    def components(self) -> int:
        """The number of scalars of an element: 1, or the length of the tuple."""
        return len(self.zero) if isinstance(self.zero, tuple) else 1

    @property
    def on_truth_values(self) -> bool:
        """True if elements are truth values with False as the zero, so that integers 0 and 1 can be read as such."""
        return self.zero is False

    @property
    def program(self) -> Program:
        """The recorded operations; a `TraceError` says what to write instead of an operation that cannot be recorded."""
        if isinstance(self._program, str):
            raise TraceError(self._program)
        return self._program

    def running(self, kinds: tuple[np.dtype[Any], ...]) -> tuple[Any, ...]:
        """Return the callables if object arrays run them, as a part of the key of cached results."""
        return (self.add, self.mul, self.star) if _OBJECT in kinds else ()

    def identities(self, dtypes: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return 0 and 1 in `dtypes`, one Python number a component.

        Examples
        --------
        >>> from semiring.algebra.catalogue import MIN_PLUS
        >>> MIN_PLUS.identities("int16")
        ((32767,), (0,))

        Parameters
        ----------
        dtypes : dtype or sequence of dtype
            One for each component, or one for all.

        Raises
        ------
        DTypeError
            If the semiring has no meaning in a dtype.
        """
        kinds = self.dtypes(dtypes)
        found = self._identities.get(kinds)
        if found is None:
            zero, one = self._identity_parts
            if any(kind.kind != "O" for kind in kinds):  # object arrays run the callables, recorded or not
                try:
                    zero, one = self.program.identities(zero, one, kinds)
                except DTypeError as error:
                    raise DTypeError(f"{self.name} has no meaning in {', '.join(dict.fromkeys(map(str, kinds)))}: {error}") from None
            self._identities[kinds] = found = zero, one
        return found

    def _has(self, dtypes: tuple[Any, ...]) -> bool:
        try:
            return dtypes in self._identities
        except TypeError:  # a list instead of a dtype
            return False

    @cached_property
    def _identities(self) -> dict[tuple[np.dtype[Any], ...], tuple[tuple[Any, ...], tuple[Any, ...]]]:
        return {}

    def dtypes(self, dtypes: Any) -> tuple[np.dtype[Any], ...]:
        """Return `dtypes` as one supported NumPy dtype a component, in native byte order.

        Examples
        --------
        >>> from semiring.algebra.catalogue import DISTANCE_COUNT
        >>> DISTANCE_COUNT.dtypes("float32")
        (dtype('float32'), dtype('float32'))

        Parameters
        ----------
        dtypes : dtype or sequence of dtype
            One for each component, or one for all.

        Raises
        ------
        DTypeError
            For another number of dtypes, an unsupported dtype, and any other object.
        """
        if type(dtypes) is tuple and self._has(dtypes):
            return dtypes
        parts = dtypes if isinstance(dtypes, list | tuple) else (dtypes,) * self.components
        if len(parts) != self.components:
            raise DTypeError(f"{self.name} has {self.components} components, but {len(parts)} dtypes were given")
        try:
            kinds = tuple(np.dtype(d).newbyteorder("=") for d in parts)
        except TypeError as error:
            raise DTypeError(f"{dtypes!r} is not a dtype: {error}") from None
        for kind in kinds:
            if kind not in DTYPES and kind.kind != "O":
                use = COMPUTED_IN.get(kind, f"one of {', '.join(map(str, DTYPES))}")
                raise DTypeError(f"dtype {kind} is not supported; use {use}, or object for exact entries")
        return kinds

    @cached_property
    def supported_dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtypes, each for all components, in which the semiring has a meaning.

        Examples
        --------
        >>> from semiring.algebra.catalogue import LOG
        >>> [str(dtype) for dtype in LOG.supported_dtypes]
        ['float32', 'float64']
        """
        return tuple(filter(self._has_meaning_in, DTYPES))

    def _has_meaning_in(self, dtype: Any) -> bool:
        try:
            self.identities(dtype)
        except (DTypeError, TraceError):
            return False
        return True

    @cached_property
    def usual_dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The default dtypes: the first that fits of float64, bool, int64 and object."""
        return self.dtypes(next(filter(self._has_meaning_in, ("float64", "bool", "int64")), object))

    @cached_property
    def selects(self) -> bool:
        """True if the recorded form of ⊕ always gives one of its operands; False does not exclude selectivity."""
        return not isinstance(self._program, str) and self._program.selects

    def narrowed(self, domain: Any) -> Self:
        """Return the same structure, with the same recordings, on another carrier."""
        other = copy.copy(self)
        carrier, plain = carrier_of(domain, self.zero, self.one)
        object.__setattr__(other, "domain", plain)
        object.__setattr__(other, "carrier", carrier)
        if not isinstance(self._program, str):
            program = compose(self.recordings, carrier, truth_values=self.on_truth_values)
            object.__setattr__(other, "_program", program)
        return other

    def _meaning(self) -> tuple[Any, ...]:
        """Return the key of equality and hash."""
        operations = (self.add, self.mul, self.star) if isinstance(self._program, str) else (self._program,)
        # repr distinguishes 0, False and -0.0, as generated kernels do; == does not.
        return (self.name, *operations, repr(self.zero), repr(self.one), self.carrier)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return self._meaning()

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AlgebraicStructure):
            return NotImplemented
        return self is other or self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # without cached properties


def _identity(value: Any, what: str) -> Any:
    """Convert an identity to plain Python numbers; other objects stay as they are."""
    if isinstance(value, tuple):
        if len(value) < 2 or any(isinstance(v, tuple | list) for v in value):
            raise SemiringError(f"{what} {value!r} must be a scalar, or a flat tuple of two or more scalars")
        return tuple(_identity(v, what) for v in value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, list | np.ndarray):
        raise SemiringError(f"{what} {value!r} is not an element; write a scalar or a tuple of scalars")
    if isinstance(value, float) and value != value:
        raise SemiringError(f"{what} is NaN, but NaN is not an element of any semiring")
    return value
