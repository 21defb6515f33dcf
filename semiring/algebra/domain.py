"""Whether whole arrays of elements lie in a semiring's carrier.

Entries are tested in pieces that fit a core's cache, with no temporary of the matrix's size; predicates, which are recorded like ⊕ and ⊗,
too. Where value statistics are known, they tell of an interval whether anything has to be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import DomainError, brief
from semiring.algebra.namespace import host, on_gpu

__all__ = ["PIECE", "outside", "pieces", "require_inside"]

PIECE = 1 << 16
"""Entries tested at a time; they and their temporaries stay in cache."""


def pieces(shape: tuple[int, ...], most: int = PIECE) -> Iterator[tuple[slice, ...]]:
    """Slices that cut an array into pieces of at most so many entries, in C order."""
    inner = math.prod(shape[1:])
    if not shape or shape[0] * inner <= most:
        yield (slice(None),) * len(shape)
    elif inner <= most:
        step = max(1, most // max(1, inner))
        for i in range(0, shape[0], step):
            yield slice(i, i + step), *(slice(None),) * (len(shape) - 1)
    else:
        for i in range(shape[0]):
            for rest in pieces(shape[1:], most):
                yield slice(i, i + 1), *rest


def outside(semiring: Semiring, values: Any) -> tuple[int, ...] | None:
    """The index of the first entry (in C order) that is no element of the semiring, or None.

    Parameters
    ----------
    semiring : Semiring
    values : array, scalar, or tuple of them
        A tuple holds one array for each component, of one shape. Integers that stand for ±∞ count as that.

    Examples
    --------
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


def require_inside(semiring: Semiring, values: Any, what: str = "a", *, advice: str = "", first: int = 0) -> None:
    """Refuse arrays with an entry that is no element of the semiring.

    Parameters
    ----------
    semiring : Semiring
    values : array, scalar, or tuple of them
    what : str
        The name of `values` in the message.
    advice : str
        What else the caller can do about a NaN, to end that sentence with.
    first : int
        Which row of the caller's array `values` begin with.

    Raises
    ------
    DomainError
        Naming the first such entry, where it is, the carrier, and what would work.
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
    if any(isinstance(v, float) and math.isnan(v) for v in found):
        raise DomainError(
            f"{place} = {brief(value)}: NaN is no element of any semiring, and outside {carrier}; "
            f"use {semiring.zero!r} (the semiring's zero) for a missing edge{advice}"
        )
    infinite = semiring.domain is None and any(isinstance(v, float) and math.isinf(v) for v in found)
    hint = "; without domain=, only the infinities that are zero or one are elements" if infinite else ""
    raise DomainError(f"{place} = {brief(value)} is outside {carrier}{hint}")
