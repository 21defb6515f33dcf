"""The operands and results of a scan, shared by compiled scans and scans by successive products."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

import numpy as np

__all__ = ["ScanOperands", "ScanPlaces", "Scans", "sequence_offsets"]

Array = np.ndarray[Any, Any]
Values = tuple[Any, ...]


class ScanOperands(NamedTuple):
    """Sequences of matrices in the dtypes of the scan, on one device. Operands are tuples with an array for each component."""

    matrices: Values  # arrays that broadcast to (…, T, S, S)
    weights: Values | None  # arrays that broadcast to (…, T, S)
    initial: Values  # arrays that broadcast to (…, S)
    lengths: Array  # steps of each sequence, at most T: an int64 array of shape (…,) on the host
    steps: int  # T
    states: int  # S

    @property
    def batch(self) -> tuple[int, ...]:
        """Return the lengths of the leading axes."""
        return tuple(self.lengths.shape)


class ScanPlaces(NamedTuple):
    """Contiguous arrays that receive the results of a scan."""

    values: Values  # arrays of shape (…, T + 1, S), or (…, S) for the last vector alone
    witness: Any = None  # int32 array of shape (…, T + 1, S), or None
    states: Any = None  # int32 array of shape (…, T + 1), or None


def sequence_offsets(v: Any, axes: int) -> np.ndarray[Any, Any]:
    """Return the byte offset of each sequence in an array whose first `axes` axes are those of the batch."""
    offsets = (step * np.arange(length, dtype=np.int64) for length, step in zip(v.shape[:axes], v.strides[:axes], strict=True))
    return np.ravel(functools.reduce(np.add.outer, offsets, np.zeros((), np.int64)))


class Scans(Protocol):
    """The compiled scans of a semiring in its dtypes, on one device."""

    def run(self, operands: ScanOperands, places: ScanPlaces, *, backward: bool, signed: bool) -> None:
        """Fill the places with the results; elements beyond a sequence's length are unchanged.

        Parameters
        ----------
        backward : bool
            True scans v_{t−1} = A_t ⊗ (w_t ⊗ v_t) from the last vector; False v_t = (v_{t−1} ⊗ A_t) ⊗ w_t.
        signed : bool
            See `Engine.signed`.
        """
