"""`matmul` multiplies two matrices over a semiring, `multi_dot` several, and `scan` a vector by a long sequence of matrices.

Sequences are those of hidden Markov models, Viterbi's algorithm and random fields.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.algorithms.chain import multiply_chain
from semiring.arrays.devices import in_stream_of
from semiring.arrays.exchange import holds_sparse
from semiring.arrays.followed import is_compiling, is_recorded, is_traced
from semiring.arrays.threads import require_threads
from semiring.common.docstrings import described_by
from semiring.common.errors import GraphError, SemiringError, ShapeError, about, described, raised_here, refuse_arrays, require_k
from semiring.execution.operands import flattened, promoted
from semiring.execution.product import Witnessed, multiply
from semiring.execution.relaunch import multiply_again
from semiring.execution.requested import multiply_as, require_overflow
from semiring.execution.sparse_product import multiply_sparse

__all__ = ["Witnessed", "matmul", "multi_dot", "scan"]


@raised_here
def matmul(
    a: Any,
    b: Any,
    semiring: Semiring | str,
    *,
    c: Any = None,
    out: Any = None,
    witness: bool = False,
    mask: Any = None,
    complement: bool = False,
    k: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
    overflow: str = "check",
    dtype: Any = None,
    ties: str = "first",
) -> Any:
    """Multiply two matrices over a semiring: element (i, j) of a ⊗ b is ⊕ over k of a_ik ⊗ b_kj.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> hours = np.array([[0.0, 4.0], [np.inf, 0.0]])
    >>> sr.matmul(hours, np.array([[1.0, 9.0], [2.0, 3.0]]), sr.MIN_PLUS)
    array([[1., 7.],
           [2., 3.]])
    >>> sr.matmul(hours, np.array([7.0, 1.0]), sr.MIN_PLUS, witness=True)
    Witnessed(values=array([5., 1.]), witness=array([1, 1], dtype=int32))

    Parameters
    ----------
    a : array of shape (…, m, k) or (k,)
    b : array of shape (…, k, n) or (k,)
        Arrays of any library, with the axes of `numpy.matmul`, or sparse arrays (How-to, Sparse). Dtypes are promoted, and ∞
        stays ∞. Over a structured semiring, operands are tuples.
    semiring : Semiring or str
        A semiring of the catalogue (also by name), or your own.
    c : array of the result's shape, optional
        The result is c ⊕ a ⊗ b; a tie keeps c.
    out : array of the result's shape and dtype, optional
        Array for the result, also `c`, `a` or `b`.
    witness : bool
        Also return the winning k of each element. ⊕ must be selective.
    mask : sparse array, or bool array, optional
        Stored or True entries select entries of a product of two sparse arrays; with `complement`, the others do.
    complement : bool
    k : int, optional
        Return only the k best elements of each row.

    Returns
    -------
    array, tuple of arrays, Witnessed, or Neighbours
        The product; with `witness`, ``(values, witness)``; with `k`, ``(values, indices)``. Library and device are those of `out`, or else
        of the first operand that is not NumPy's. Two sparse arrays give one in the format of `a`.

    Other Parameters
    ----------------
    device : {"auto", "cpu", "cuda", "cuda:0", …, "reference"}
        Arrays on a GPU stay there; only NumPy's are copied to a GPU.
    threads : int, optional
        CPU threads; by default ``SEMIRING_NUM_THREADS``, or all cores.
    check : bool
        False skips checks of entries.
    overflow : {"check", "wrap"}
        "wrap" computes integers over `PLUS_TIMES` with NumPy's bits.
    dtype : dtype, optional
        Dtype of a dense product and its sums.
    ties : {"first", "split"}
        The first of equal terms gets the gradient, or all share it.

    Raises
    ------
    ShapeError, GraphError
        If operands do not fit together, or cannot be read.
    DTypeError, DomainError
        If the semiring lacks the dtype, or an entry is NaN or outside the carrier.
    OverflowRiskError
        If large numbers or many steps could leave the dtype.
    LawError
        If a witness is wanted and ⊕ is not selective.
    TooLargeError
        If memory is short.

    Notes
    -----
    m·n·k steps. How it works, Accuracy, bounds the errors over `LOG`. More: Reference, Options.
    """
    if is_compiling(a, b):
        from semiring.execution.compiled import in_graph

        more = {"c": c, "out": out, "mask": mask, "complement": complement, "k": k, "overflow": overflow, "dtype": dtype, "ties": ties}
        return in_graph(matmul, a, b, semiring, witness=witness, device=device, threads=threads, check=check, **more)
    if type(semiring) is not Semiring or hasattr(witness, "shape") or hasattr(device, "shape") or hasattr(check, "shape"):
        semiring = as_semiring(semiring)
        refuse_arrays(witness=witness, device=device, check=check)
    if threads is not None:
        require_threads(threads)
    if complement is not False:
        if not isinstance(complement, bool | np.bool_):
            raise SemiringError(f"complement is {described(complement)}; it must be True or False")
        complement = bool(complement)
    if ties not in ("first", "split"):
        raise SemiringError(f"ties is {described(ties)}; it must be 'first' or 'split'")
    options = bool(witness or semiring.witness), device, threads, bool(check)
    if k is not None:
        return _best(a, b, semiring, k, options, alone=c is out is mask is dtype is None and overflow == "check")
    usual = dtype is None and type(overflow) is str and overflow == "check"
    try:
        if usual and mask is None and not complement:
            if type(a) is type(b) is np.ndarray:
                return multiply(a, b, semiring, c, out, options)
            if (found := multiply_again(a, b, c, out, semiring, options)) is not None:
                return found
        if is_recorded(a) or is_recorded(b):
            from semiring.execution.gradients import multiply_with_gradient  # only where PyTorch is
            from semiring.execution.sparse_gradients import multiply_sparse_with_gradient

            alone = usual and c is out is mask is None and not complement
            if holds_sparse(a) or holds_sparse(b):
                return multiply_sparse_with_gradient(a, b, semiring, options, alone=alone and ties == "first")
            return multiply_with_gradient(a, b, semiring, options, alone=alone, split=ties == "split")
        if is_traced(a) or is_traced(b):
            from semiring.execution.traced_product import multiply_traced  # only where JAX is

            alone = usual and c is out is mask is None and not complement
            return multiply_traced(a, b, semiring, options, alone=alone, split=ties == "split")
        sparse = mask is not None or complement or holds_sparse(a) or holds_sparse(b)
        if usual and not sparse and (type(a) is np.ndarray or type(b) is np.ndarray):
            return multiply(a, b, semiring, c, out, options)
        with in_stream_of(flattened((a, b, c, out))):
            if not usual:
                require_overflow(overflow)
                if sparse:
                    raise GraphError("overflow and dtype are options of dense products; convert the entries of sparse arrays")
                return multiply_as(a, b, semiring, c, out, options, dtype, overflow)
            if sparse:
                return multiply_sparse(a, b, semiring, c, out, mask, complement, options)
            return multiply(a, b, semiring, c, out, options)
    except SemiringError as error:
        about(error, "the product", semiring, a, b)
        raise


def _best(a: Any, b: Any, semiring: Semiring, k: Any, options: tuple[bool, str, int | None, bool], *, alone: bool) -> Any:
    """Return the k best elements of each row of a ⊗ b."""
    witness, device, threads, check = options
    k = require_k(k)
    if witness or not alone or semiring.components > 1 or holds_sparse(a) or holds_sparse(b):
        raise SemiringError(
            "k= is for products of two dense matrices of single numbers; leave out c, out, witness, mask, overflow and dtype"
        )
    from semiring.execution.pairwise import best_of_product

    try:
        with in_stream_of(flattened((a, b))):
            return best_of_product(a, b, semiring, k, device, threads, check)
    except SemiringError as error:
        about(error, "the product", semiring, a, b)
        raise


@raised_here
@described_by(matmul)
def multi_dot(
    arrays: Sequence[Any],
    semiring: Semiring | str,
    *,
    out: Any = None,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> Any:
    """Multiply several matrices over a semiring in the order of products that takes the fewest steps.

    Examples
    --------
    For two matrices and a vector, two products with a vector are made:

    >>> import numpy as np, semiring as sr
    >>> hours = np.array([[0.0, 4.0], [np.inf, 0.0]])
    >>> sr.multi_dot([hours, hours.T, np.array([1.0, 7.0])], sr.MIN_PLUS)
    array([1., 5.])

    Parameters
    ----------
    arrays : sequence of arrays
        At least two dense arrays of shapes (…, m, k), (…, k, n) and so on; the first and the last may be vectors. The factors keep their
        order, because ⊗ need not commute. Dtypes are promoted to a common one, in which ∞ stays ∞. Over a structured semiring, each factor
        is a tuple of arrays.
    semiring : Semiring or str
        A semiring of the catalogue (also by name), or your own.
    out : array of the result's shape and dtype, optional
        Array for the result.

    Returns
    -------
    array, or tuple of arrays
        The product, in the kind that `matmul` returns.

    Raises
    ------
    ShapeError
        If fewer than two arrays are passed, or their shapes do not fit.
    DTypeError, GraphError, DomainError, OverflowRiskError, TooLargeError
        If `matmul` raises the error for one product of the chain, or an array is sparse.

    Notes
    -----
    The brackets are found by the dynamic program of `numpy.linalg.multi_dot` (Cormen et al., Introduction to Algorithms), in O(n³)
    operations for n arrays. Floats are rounded in the order of these brackets.
    """
    if is_compiling(arrays):
        from semiring.execution.compiled import in_graph

        return in_graph(multi_dot, arrays, semiring, out=out, device=device, threads=threads, check=check)
    if type(semiring) is not Semiring or hasattr(device, "shape") or hasattr(check, "shape"):
        semiring = as_semiring(semiring)
        refuse_arrays(device=device, check=check)
    given, factors = semiring.marked(False), list(arrays)  # no single k wins in a chain
    if len(factors) < 2:
        raise ShapeError(f"a chain has at least two arrays; this one has {len(factors)}")
    if any(map(holds_sparse, factors)):
        raise GraphError("a chain takes dense arrays; multiply sparse arrays by matmul, in the order that keeps the products small")
    try:
        with in_stream_of(flattened((*factors, out))):
            if any(map(is_recorded, factors)):
                from semiring.execution.gradients import operands_with_gradient

                factors, shapes = operands_with_gradient(factors, given, alone=out is None)
            else:
                factors, shapes = promoted(factors, given)
            sides = [shapes[0][-2] if len(shapes[0]) > 1 else 1, *(s[-1] for s in shapes)]
            if len(shapes[-1]) == 1:
                sides[-2:] = [shapes[-1][0], 1]

            def product(x: Any, y: Any, ends: tuple[int, int]) -> Any:
                return matmul(x, y, given, out=out if ends == (0, len(factors) - 1) else None, device=device, threads=threads, check=check)

            return multiply_chain(factors, sides, product)
    except SemiringError as error:
        about(error, "the chain", given, *arrays)
        raise


@raised_here
@described_by(matmul)
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
    sample: Any = None,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> Any:
    """Multiply a vector by a sequence of matrices: v[t] = (v[t−1] ⊗ A[t]) ⊗ w[t] for t = 1, …, T.

    The weights w[t] multiply elementwise. With ``reverse``, v[t−1] = A[t] ⊗ (w[t] ⊗ v[t]) from the last vector to the first.

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
        One A for all steps, or A[1], …, A[T], in arrays of any library. Structured elements are tuples of arrays.
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
        Also return the winning k of every step, and the best states. ⊕ must be selective.
    last : bool
        Return only the last computed vector.
    sample : numpy.random.Generator or int, optional
        Also draw states from their posterior (LOG, PLUS_TIMES).

    Returns
    -------
    array, tuple of arrays, Decoded, or Sampled
        v[0], …, v[T] in the shape (…, T + 1, S), zero beyond the end of a sequence; with `last` (…, S). With `witness` a named tuple
        ``(values, witness, states)``, with `sample` ``(values, states)``. Leading axes broadcast; `matmul` describes dtypes, libraries and
        devices.

    Other Parameters
    ----------------
    device : {"auto", "cpu", "cuda", "cuda:0", …, "reference"}
        "auto" computes on the device of the operands.
    threads : int, optional
        CPU threads, which share the sequences of a batch.
    check : bool
        False skips the checks that raise `DomainError` or `OverflowRiskError`.

    Notes
    -----
    T·S² steps, without an array of T·S² entries. Over LOG the vectors are the α (reversed, the β) of a hidden Markov model (Rabiner 1989);
    over MAX_PLUS the states are Viterbi's (1967). Gradients: How-to, Gradients. More: How-to, Sequences.
    """
    if is_compiling(matrices, initial, weights):
        from semiring.execution.compiled import in_graph

        more = {"reverse": reverse, "witness": witness, "last": last, "sample": sample, "device": device, "threads": threads}
        return in_graph(scan, matrices, semiring, initial, weights=weights, lengths=lengths, check=check, **more)
    if type(semiring) is not Semiring or hasattr(witness, "shape") or hasattr(reverse, "shape") or hasattr(last, "shape"):
        semiring = as_semiring(semiring)
        refuse_arrays(reverse=reverse, witness=witness, last=last, device=device, check=check)
    from semiring.execution.scan import ScanOptions, scan_sequences  # only where they are wanted: a first call should be quick

    require_threads(threads)
    options = ScanOptions(bool(last), bool(reverse), bool(witness or semiring.witness), device, threads, bool(check), _generator(sample))
    if options.witness and options.sample is not None:
        raise SemiringError("witness returns the best states, and sample draws states; pass one of the two")
    try:
        if "torch" in sys.modules and any(map(is_recorded, (matrices, initial, weights))):
            from semiring.execution.scan_gradients import scan_with_gradient

            return scan_with_gradient(matrices, semiring, initial, weights, lengths, options)
        if any(map(is_traced, (matrices, initial, weights, lengths))):
            from semiring.execution.traced_scan import scan_traced

            return scan_traced(matrices, semiring, initial, weights, lengths, options)
        with in_stream_of(flattened((matrices, initial, weights))):
            return scan_sequences(matrices, semiring, initial, weights, lengths, options)
    except SemiringError as error:
        about(error, "the scan", semiring, matrices)
        raise


def _generator(sample: Any) -> np.random.Generator | None:
    """Return the generator of random numbers for `sample`."""
    if sample is None or isinstance(sample, np.random.Generator):
        return sample
    if isinstance(sample, bool | np.bool_) or not isinstance(sample, int | np.integer) or sample < 0:
        raise SemiringError(f"sample is {described(sample)}; it must be a numpy.random.Generator, or an integer of at least 0 as its seed")
    return np.random.default_rng(int(sample))
