"""What a scan is asked of, and where its answer is put: the same for generated code and for products one after the other."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

import numpy as np

__all__ = ["ScanOperands", "ScanPlaces", "Scans", "sequence_offsets"]

Array = np.ndarray[Any, Any]
Values = tuple[Any, ...]


class ScanOperands(NamedTuple):
    """Sequences of matrices, in the dtypes of the scan, on one device; each a tuple with an array for each component.

    Attributes
    ----------
    matrices : tuple of arrays that broadcast to (…, T, S, S)
    weights : tuple of arrays that broadcast to (…, T, S), or None
    initial : tuple of arrays that broadcast to (…, S)
    lengths : int64 array of the host of shape (…,)
        The steps of each sequence, which are at most T.
    steps, states : int
        T and S.
    """

    matrices: Values
    weights: Values | None
    initial: Values
    lengths: Array
    steps: int
    states: int

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return tuple(self.lengths.shape)


class ScanPlaces(NamedTuple):
    """Where the answer is put, in contiguous arrays.

    Attributes
    ----------
    values : tuple of arrays of shape (…, T + 1, S), or (…, S) for the last vector alone
    witness : int32 array of shape (…, T + 1, S), or None
    states : int32 array of shape (…, T + 1), or None
    """

    values: Values
    witness: Any = None
    states: Any = None


def sequence_offsets(v: Any, axes: int) -> np.ndarray[Any, Any]:
    """How many bytes behind its start an array has what belongs to each sequence; its leading axes are those of the batch."""
    offsets = (step * np.arange(length, dtype=np.int64) for length, step in zip(v.shape[:axes], v.strides[:axes], strict=True))
    return np.ravel(functools.reduce(np.add.outer, offsets, np.zeros((), np.int64)))


class Scans(Protocol):
    """The generated scans of a semiring in its dtypes, on one device."""

    def run(self, operands: ScanOperands, places: ScanPlaces, *, backward: bool, signed: bool) -> None:
        """Fill the places with the answer, but for what is beyond the lengths of sequences.

        Parameters
        ----------
        operands : ScanOperands
        places : ScanPlaces
        backward : bool
            v_{t−1} = A_t ⊗ (w_t ⊗ v_t) from the last vector on, instead of v_t = (v_{t−1} ⊗ A_t) ⊗ w_t.
        signed : bool
            See `Engine.signed`.
        """
