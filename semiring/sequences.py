"""`scan`: multiply a vector by a long sequence of matrices (hidden Markov models, Viterbi's algorithm, random fields)."""

from __future__ import annotations

from typing import Any

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.arrays.devices import in_stream_of
from semiring.arrays.threads import require_threads
from semiring.common.errors import SemiringError, about, raised_here, refuse_arrays
from semiring.execution.operands import flattened
from semiring.execution.scan import Decoded, ScanOptions, scan_sequences

__all__ = ["Decoded", "scan"]


@raised_here
def scan(
    matrices: Any,
    semiring: Semiring | str,
    initial: Any = None,
    *,
    weights: Any = None,
    lengths: Any = None,
    reverse: bool = False,
    witness: bool = False,
    last: bool = False,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> Any:
    """Multiply a vector by a sequence of matrices: v[t] = (v[t−1] ⊗ A[t]) ⊗ w[t] for t = 1, …, T.

    The product with the weights w[t] is elementwise. With ``reverse``, v[t−1] = A[t] ⊗ (w[t] ⊗ v[t]) from the last vector to the first.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> weather = np.array([[0.75, 0.25], [0.5, 0.5]])
    >>> sr.scan(weather, sr.PLUS_TIMES, [1.0, 0.0], lengths=2)
    array([[1.    , 0.    ],
           [0.75  , 0.25  ],
           [0.6875, 0.3125]])
    >>> seen = np.array([[0.125, 0.5], [0.25, 0.5]])
    >>> sr.scan(weather, sr.MAX_TIMES, weights=seen, witness=True).states
    array([1, 1, 1], dtype=int32)

    Parameters
    ----------
    matrices : array of shape (S, S) or (…, T, S, S)
        One A for all steps, or A[1], …, A[T], in arrays of any library. Over a structured semiring, operands are tuples of arrays.
    semiring : Semiring or str
        A semiring of the catalogue (also by name), or your own.
    initial : array of shape (…, S), optional
        v[0], or with ``reverse`` the last vector; by default 1 in each state.
    weights : array of shape (…, T, S), optional
        w[1], …, w[T], such as weights of observations.
    lengths : int or array of shape (…,), optional
        Steps of each sequence of a batch; later entries are ignored.
    reverse : bool
    witness : bool
        Also return the winning k of every step, and the states of the best sequence. ⊕ must be selective.
    last : bool
        Return only the last computed vector.

    Returns
    -------
    array, tuple of arrays, or Decoded
        v[0], …, v[T] in the shape (…, T + 1, S), zero beyond the end of a sequence; with `last` (…, S). With `witness` a named tuple
        ``(values, witness, states)``. Leading axes broadcast; `matmul` describes dtypes, libraries and devices.

    Other Parameters
    ----------------
    device : {"auto", "cpu", "cuda", "cuda:0", …, "reference"}
        "auto" computes on the device of the operands.
    threads : int, optional
        CPU threads, which share the sequences of a batch.
    check : bool
        False skips the checks that raise `DomainError` or `OverflowRiskError`.

    Raises
    ------
    ShapeError, GraphError
        If operands do not fit together, are on different devices, or cannot be read.
    DTypeError, DomainError
        If the semiring is not defined for the dtype, or an entry is NaN or outside the carrier.
    OverflowRiskError
        If large numbers or many steps could leave the dtype.
    LawError
        If ``witness=True`` and ⊕ is not selective.
    TooLargeError
        If the GPU lacks the memory.

    Notes
    -----
    T·S² steps, without an array of T·S² entries. Over LOG the vectors are the α (and, reversed, the β) of a hidden Markov model (Rabiner,
    "A tutorial on hidden Markov models", 1989); over MAX_PLUS the states are Viterbi's (1967). More: How-to, Sequences.
    """
    if type(semiring) is not Semiring or hasattr(witness, "shape") or hasattr(reverse, "shape") or hasattr(last, "shape"):
        semiring = as_semiring(semiring)
        refuse_arrays(reverse=reverse, witness=witness, last=last, device=device, check=check)
    require_threads(threads)
    options = ScanOptions(bool(last), bool(reverse), bool(witness or semiring.witness), device, threads, bool(check))
    try:
        with in_stream_of(flattened((matrices, initial, weights))):
            return scan_sequences(matrices, semiring, initial, weights, lengths, options)
    except SemiringError as error:
        about(error, "the scan", semiring, matrices)
        raise
