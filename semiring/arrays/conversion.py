"""Entries of arrays as elements: lossless conversion between dtypes, and the check against the carrier.

Conversions keep ±∞, the largest and smallest values of integers, and refuse values that the new dtype cannot hold. Entries are checked
in pieces that fit a core's cache, without a temporary of the array's size.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.elements import COMPUTED_IN, Array, Values, element
from semiring.arrays.devices import host, namespace, on_gpu, to_float32, to_float64
from semiring.arrays.exchange import refuse_short_floats
from semiring.arrays.pieces import pieces
from semiring.common.errors import DomainError, DTypeError, brief

__all__ = [
    "EXACT_IN_FLOAT64", "Array", "Conversion", "Place", "Values", "conversions", "first", "nan", "outside", "refuse_nan", "refuse_text",
    "require_inside", "widened", "written_as",
]  # fmt: skip

Place = Callable[[tuple[int, ...]], str]
"""A function that names an entry of the caller's array in a message."""

EXACT_IN_FLOAT64 = 1 << 53
"""The integer up to which float64 is exact."""

_CONVERT = "convert the entries to numbers, as by .astype(float)"


def first(mask: Array) -> tuple[int, ...]:
    """Return the index of the first True of a mask."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


@functools.lru_cache(maxsize=256)
def widened(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the default dtype for computations with entries of `dtype`, in native byte order.

    float16 and int8 become float32 and int16, without loss; other dtypes stay. DTypeError is raised for a dtype without an exact
    counterpart.
    """
    dtype = dtype.newbyteorder("=")
    if wider := COMPUTED_IN.get(dtype):
        return wider
    if dtype.kind == "f" and dtype.itemsize > 8:
        raise DTypeError(f"{dtype} is not supported; convert to float64 to round, or use an object array of Fractions for exact entries")
    refuse_short_floats(dtype)
    if dtype.kind not in "biufO":
        kinds = {
            "c": "complex numbers, which have no order",
            "U": "text, not numbers",
            "S": "bytes, not numbers",
            "M": "dates",
            "m": "durations",
        }
        kind = kinds.get(dtype.kind, f"entries of dtype {dtype}, not numbers")
        advice = "convert the entries, as by array.astype(float)" if dtype.kind in "US" else "pass bool, integers or floats"
        raise DTypeError(f"the array contains {kind}; {advice}, or an object array for exact entries")
    return dtype


def written_as(dtype: np.dtype[Any], *, numbers: bool) -> np.dtype[Any]:
    """Return the dtype whose values for ±∞ apply: `dtype`, or object if `dtype` was chosen for Python `numbers`.

    An array of integers writes ∞ as the largest value. In lists, edges and sparse arrays every integer is a number.
    """
    return np.dtype(object) if numbers and dtype.kind in "iu" else dtype


def nan(entries: Array) -> Array:
    """Return the mask of NaN in an array of any dtype."""
    if entries.dtype.kind != "O":
        unequal: Array = namespace(entries).asarray(entries != entries)
        return unequal
    # SymPy's nan equals itself; a comparison with a float NaN would warn.
    with np.errstate(invalid="ignore"):
        return np.asarray(np.frompyfunc(lambda v: v != v or type(v).__name__ == "NaN", 1, 1)(entries), dtype=bool)


def refuse_nan(entries: Array, where: Place) -> None:
    """Raise `DomainError` at the first NaN."""
    found = nan(entries)
    if found.any():
        raise DomainError(
            f"{where(first(found))} is NaN, but NaN is not an element of any semiring; pass nonedge=nan if it means 'no edge'"
        )


def refuse_text(entry: Any, place: str) -> None:
    """Raise `DTypeError` for a text."""
    if isinstance(entry, str | bytes):
        raise DTypeError(f"{place} = {brief(entry)} is a text; {_CONVERT}") from None


@dataclass(frozen=True)
class Conversion:
    """The conversion of one component of an element to another `dtype`.

    `read` and `written` map the infinities of the semiring to their values in the old and in the new dtype.
    """

    dtype: np.dtype[Any]
    read: Mapping[float, Any]
    written: Mapping[float, Any]

    def __call__(self, entries: Array, where: Place) -> Array:
        """Convert entries on their device; only floats are rounded.

        DTypeError names the first entry that the dtype cannot hold, or would take for ±∞; DomainError refuses NaN as an integer.
        """
        gpu = on_gpu(entries)
        entries = entries if gpu else np.asarray(entries)  # indexing gives scalars for arrays without axes
        old, new = entries.dtype, self.dtype
        if old == new and self.read == self.written:
            return entries
        if old.kind == "O":
            return self._from_objects(entries, where)
        numbers = entries
        if gpu and old.kind == "f":
            numbers = to_float64(entries)
        elif old.kind == "f" and old.itemsize == 2:  # in float16 the bounds of integers would be ∞
            numbers = entries.astype(np.float32)
        if new.kind == "b":
            which = "neither 0 nor 1, so not a truth value; pass truth values, such as x != 0"
            self._refuse((numbers != 0) & (numbers != 1), entries, where, which)
            truths: Array = namespace(entries).asarray(numbers != 0)
            return truths
        special = [] if old.kind == "b" else [(numbers == code, infinity) for infinity, code in self.read.items()]
        held = f"which {new} cannot hold; use a wider dtype, or a float one"
        if new.kind in "iu" and old.kind != "b":
            finite = ~functools.reduce(operator.or_, [mask for mask, _ in special], namespace(numbers).zeros(numbers.shape, dtype=bool))
            self._refuse(finite & self._outside(numbers, where), entries, where, held)
            for infinity, code in self.written.items():
                self._refuse(finite & _are(numbers, code), entries, where, self._stands_for(infinity))
        with np.errstate(over="ignore", invalid="ignore"):
            out = to_float32(numbers) if gpu and old.kind == "f" and new == np.float32 else numbers.astype(new)
        if new.kind == "f" and old.kind == "f":
            infinite = namespace(out).isinf
            self._refuse(infinite(out) & ~infinite(numbers), entries, where, held)
        for mask, infinity in special:
            if mask.any():
                out[mask] = self.written[infinity]
        return out

    def _from_objects(self, entries: Array, where: Place) -> Array:
        out = np.empty(entries.shape, self.dtype)
        for index in np.ndindex(entries.shape):
            value = entries[index]
            try:
                number = bool(value) if self.dtype.kind == "b" and value in (0, 1) else element(value, self.dtype)
            except (DTypeError, TypeError) as error:
                refuse_text(value, where(index))
                hint = "" if self.dtype.kind == "b" else " (dtype=object computes with any Python number)"
                raise DTypeError(f"{where(index)}: {error}{hint}") from None
            if self.dtype.kind in "iu" and value not in self.written:
                if number != value:  # −1 and ∞ stand for the largest value only as identities of the semiring
                    raise DTypeError(f"{where(index)} is {brief(value)}, which {self.dtype} cannot hold; use a wider dtype, or a float one")
                for infinity, code in self.written.items():
                    if number == code:
                        raise DTypeError(f"{where(index)} is {brief(value)}, {self._stands_for(infinity)}")
            out[index] = number
        return out

    def _stands_for(self, infinity: float) -> str:
        if infinity < 0 and self.dtype.kind == "u":
            other = "a signed or a float dtype"
        else:
            other = "float64, or object for exact integers" if self.dtype.itemsize == 8 else "a wider dtype, or a float one"
        sign = "" if infinity > 0 else "-"
        return f"which stands for {'−' if sign else ''}∞ in {self.dtype}; use {other}, or {sign}math.inf to mean ∞"

    def _outside(self, entries: Array, where: Place) -> Array:
        xp, info = namespace(entries), np.iinfo(self.dtype)
        low, high = int(info.min), int(info.max)
        outside: Array
        if entries.dtype.kind == "f":
            refuse_nan(entries, where)
            # high + 1, a power of two, is exact as a float; high may not be.
            outside = (entries != xp.floor(entries)) | (entries < low) | (entries >= float(high + 1))
        else:
            own = np.iinfo(entries.dtype)
            outside = xp.zeros(entries.shape, dtype=bool)
            outside |= entries > high if own.max > high else False
            outside |= entries < low if own.min < low else False
        return outside

    def _refuse(self, outside: Array, entries: Array, where: Place, why: str) -> None:
        if outside.any():
            index = first(outside)
            raise DTypeError(f"{where(index)} is {host(entries[index])[()]}, {why}")


def _are(numbers: Array, code: int) -> Array:
    """Return the mask of numbers equal to `code`; CuPy compares integers only within their dtype."""
    known = numbers.dtype.kind not in "iu" or np.iinfo(numbers.dtype).min <= code <= np.iinfo(numbers.dtype).max
    found: Array = numbers == code if known else namespace(numbers).zeros(numbers.shape, dtype=bool)
    return found


def conversions(semiring: Semiring, old: Sequence[np.dtype[Any]], new: Sequence[np.dtype[Any]]) -> tuple[Conversion, ...]:
    """Build a `Conversion` for each component."""
    return tuple(map(Conversion, new, _infinities(semiring, old), _infinities(semiring, new)))


def _infinities(semiring: Semiring, dtypes: Sequence[np.dtype[Any]]) -> list[dict[float, Any]]:
    """Map, for each component, the infinite identities to the values that stand for them."""
    identities = [v if isinstance(v, tuple) else (v,) for v in (semiring.zero, semiring.one)]
    standing: tuple[tuple[Any, ...], ...]
    try:
        standing = semiring.identities(tuple(dtypes))
    except DTypeError:  # only the new dtype needs a meaning; an old one without, such as int8, may still write ∞
        standing = tuple(tuple(map(_standing, values, dtypes)) for values in identities)
    return [
        {plain: code for plain, code in zip(values, codes, strict=True) if code is not None and _is_infinite(plain)}
        for values, codes in zip(zip(*identities, strict=True), zip(*standing, strict=True), strict=True)
    ]


def _standing(value: Any, dtype: np.dtype[Any]) -> Any:
    try:
        return element(value, dtype) if _is_infinite(value) else None
    except DTypeError:
        return None


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def outside(semiring: Semiring, values: Any) -> tuple[int, ...] | None:
    """Return the index of the first entry (in C order) outside the carrier, or None; integers that stand for ±∞ count as such.

    `values` are an array or scalar, or a tuple of one array for each component, of one shape.

    >>> import numpy as np
    >>> from semiring.algebra.catalogue import MAX_TIMES
    >>> outside(MAX_TIMES, np.array([[0.5, 1.0], [-0.5, 2.0]]))
    (1, 0)
    """
    arrays = tuple(v if on_gpu(v) else np.asarray(v) for v in (values if isinstance(values, tuple) else (values,)))
    carrier, shape = semiring.carrier, arrays[0].shape
    if 0 in shape or carrier.contains_every([v.dtype for v in arrays]):
        return None
    for piece in pieces(shape):
        inside = carrier.holds([host(v[piece] if shape else v) for v in arrays])
        if not inside.all():
            local = np.unravel_index(int(np.argmin(inside)), inside.shape)
            return tuple(int(i) + (s.start or 0) for i, s in zip(local, piece, strict=True))
    return None


def require_inside(semiring: Semiring, values: Any, what: str = "a", *, of_graph: bool = False, first: int = 0, axes: int = 2) -> None:
    """Refuse arrays with an entry outside the carrier; the `DomainError` names the entry, the carrier, and a remedy.

    `values` are an array, a scalar, or a tuple of them, named `what` in the message, and begin with row `first` of the caller's array. For
    entries or weights of a graph (`of_graph`), the message advises `nonedge`. The error's `index` has the axes before the last `axes`,
    those of a stack.
    """
    index = outside(semiring, values)
    if index is None:
        return
    parts = [host(v[index]) if on_gpu(v) else np.asarray(v)[index] for v in (values if isinstance(values, tuple) else (values,))]
    found = [p.item() if isinstance(p, np.generic | np.ndarray) and p.dtype != object and p.size == 1 else p for p in parts]
    value = tuple(found) if len(found) > 1 else found[0]
    index = (index[0] + first, *index[1:]) if index else index
    place = f"{what}[{', '.join(map(str, index))}]" if index else what
    carrier = f"the carrier of {semiring.name}, {semiring.carrier}"
    if any(isinstance(v, str | bytes) for v in found):
        problem = f" is a text, and outside {carrier}; {_CONVERT}"
    elif any(isinstance(v, float) and math.isnan(v) for v in found):
        problem = (
            f": NaN is not an element of any semiring, and outside {carrier}; "
            f"use {semiring.zero!r} (the semiring's zero) for a missing edge{', or nonedge=nan' * of_graph}"
        )
    else:
        infinite = any(isinstance(v, float) and math.isinf(v) for v in found)
        hint = "; without domain=, only the infinities that are zero or one are elements" if infinite and semiring.domain is None else ""
        if infinite and of_graph and len(found) == 1:
            hint = f"; pass nonedge={value!r} if it means 'no edge'{hint}"
        problem = f" is outside {carrier}{hint}"
    error = DomainError(f"{place} = {brief(value)}{problem}")
    error.index = index[:-axes] or None
    raise error
