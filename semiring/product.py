"""`matmul`, the product of two matrices over a semiring, and `multi_dot`, that of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.algorithms.chain import multiply_chain
from semiring.arrays.cuda_stream import in_stream_of
from semiring.arrays.threads import require_threads
from semiring.common.errors import GraphError, SemiringError, ShapeError, about, described, raised_here, refuse_arrays
from semiring.execution.operands import flattened, promoted
from semiring.execution.product import Witnessed, multiply
from semiring.execution.relaunch import multiply_again
from semiring.execution.sparse_product import multiply_sparse
from semiring.graphs.array_like import holds_sparse

__all__ = ["Witnessed", "matmul", "multi_dot"]


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
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> Any:
    """The product a ⊗ b of matrices over a semiring: element (i, j) is ⊕ over k of a_ik ⊗ b_kj.

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
        Arrays of any library, with axes as of `numpy.matmul`, or sparse ones (How-to, Sparse); dtypes are promoted to a common one, in
        which ∞ stays ∞. Over a structured semiring a tuple of arrays.
    semiring : Semiring or str
        One of the catalogue, also by its name, or your own. `Semiring.with_witness` asks for the witness.
    c : array of the result's shape, optional
        The result is c ⊕ a ⊗ b; a tie keeps c. It is never modified.
    out : array of the result's shape and dtype, optional
        Where the result is put; it may be `c`, `a` or `b` itself.
    witness : bool
        Also return which k won. ⊕ must be selective.
    mask : sparse array, or bool array, optional
        Which entries of a product of two sparse arrays are wanted, or with `complement` not.
    complement : bool
        See `mask`.

    Returns
    -------
    array, tuple of arrays, or Witnessed
        The product (a tuple over a structured semiring); with `witness`, ``(values, witness)``. It is of the library and on the device of
        `out`, or else of the first operand that is not NumPy's; of two sparse arrays it is sparse as `a` is.

    Other Parameters
    ----------------
    device : {"auto", "cpu", "cuda", "cuda:0", …, "reference"}
        Arrays on a GPU stay there; NumPy's go to them, those of other libraries do not.
    threads : int, optional
        Of the CPU; by default ``SEMIRING_NUM_THREADS``, or all cores.
    check : bool
        False looks for nothing that raises `DomainError` or `OverflowRiskError`; the product of what would be refused is meaningless.

    Raises
    ------
    ShapeError, GraphError
        What does not fit together, lies on different devices or cannot be read.
    DTypeError, DomainError
        A dtype in which the semiring has no meaning; NaN, or an element outside the carrier.
    OverflowRiskError
        Numbers so large that the product could leave the dtype.
    LawError
        A witness is asked for and ⊕ is not selective.
    TooLargeError
        A GPU that has not the memory, or of sparse arrays a host.

    Notes
    -----
    m·n·k steps. Over `LOG`, on the CPU, an element r is within ``c ε max(1, |r|)``, ``c = min(k, 128)/2 + 16 ⌈k/512⌉ + 16`` (of sparse
    arrays ``3k + 16``). More: Reference, Options; How it works, Accuracy.
    """
    if type(semiring) is not Semiring or hasattr(witness, "shape") or hasattr(device, "shape") or hasattr(check, "shape"):
        semiring = as_semiring(semiring)
        refuse_arrays(witness=witness, device=device, check=check)
    if threads is not None:
        require_threads(threads)
    if complement is not False:
        complement = _truth(complement, "complement")
    options = bool(witness or semiring.witness), device, threads, bool(check)
    try:
        if mask is None and not complement:
            if type(a) is type(b) is np.ndarray:
                return multiply(a, b, semiring, c, out, options)
            if c is out is None and (found := multiply_again(a, b, semiring, options)) is not None:
                return found
        sparse = mask is not None or complement or holds_sparse(a) or holds_sparse(b)
        if not sparse and (type(a) is np.ndarray or type(b) is np.ndarray):
            return multiply(a, b, semiring, c, out, options)
        with in_stream_of(flattened((a, b, c, out))):
            if sparse:
                return multiply_sparse(a, b, semiring, c, out, mask, complement, options)
            return multiply(a, b, semiring, c, out, options)
    except SemiringError as error:
        about(error, "the product", semiring, a, b)
        raise


def _truth(value: Any, name: str) -> bool:
    """An argument that is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise SemiringError(f"{name} is {described(value)}; it is True or False")
    return bool(value)


@raised_here
def multi_dot(
    arrays: Sequence[Any],
    semiring: Semiring | str,
    *,
    out: Any = None,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> Any:
    """The product of several matrices over a semiring, with brackets where they save the most steps.

    Examples
    --------
    Two matrices and a column: no product of two matrices is made.

    >>> import numpy as np, semiring as sr
    >>> hours = np.array([[0.0, 4.0], [np.inf, 0.0]])
    >>> sr.multi_dot([hours, hours.T, np.array([1.0, 7.0])], sr.MIN_PLUS)
    array([1., 5.])

    Parameters
    ----------
    arrays : sequence of arrays
        At least two, dense, of shapes (…, m, k), (…, k, n) and so on; the first and the last may be vectors. They stay in their order, as
        ⊗ need not commute. Their dtypes are promoted to a common one, in which ∞ stays ∞. Over a structured semiring each is a tuple of
        arrays.
    semiring : Semiring or str
        One of the catalogue, also by its name, or one of your own.
    out : array of the result's shape and dtype, optional
        Where the result is put.

    Returns
    -------
    array, or tuple of arrays
        As `matmul` gives it.

    Other Parameters
    ----------------
    device, threads, check
        As of `matmul`, which each product is.

    Raises
    ------
    ShapeError
        For fewer than two arrays, or such that do not fit each other.
    DTypeError, GraphError, DomainError, OverflowRiskError, TooLargeError
        Those of `matmul`; a product within the chain is refused as one of two matrices is.

    Notes
    -----
    The brackets are those of the usual dynamic program, as of `numpy.linalg.multi_dot` (Cormen et al., Introduction to Algorithms), which
    takes O(n³) operations for n arrays. Floats are rounded as the order has it.
    """
    if type(semiring) is not Semiring or hasattr(device, "shape") or hasattr(check, "shape"):
        semiring = as_semiring(semiring)
        refuse_arrays(device=device, check=check)
    semiring, factors = semiring.marked(False), list(arrays)  # no single k wins in a chain
    if len(factors) < 2:
        raise ShapeError(f"a chain has at least two arrays; this one has {len(factors)}")
    given = semiring
    if any(map(holds_sparse, factors)):
        raise GraphError("a chain is of dense arrays; multiply sparse ones by matmul, in the order in which the products stay small")
    try:
        with in_stream_of(flattened((*factors, out))):
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
