"""`matmul`, the product of two matrices over a semiring."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring, require_semiring
from semiring.arrays.cuda_stream import in_stream_of
from semiring.common.errors import SemiringError, about, refuse_arrays
from semiring.execution.product import Witnessed, multiply, multiply_again

__all__ = ["Witnessed", "matmul"]


def matmul(
    a: Any,
    b: Any,
    semiring: Semiring,
    *,
    c: Any = None,
    out: Any = None,
    witness: bool = False,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> Any:
    """The product a ⊗ b over a semiring: element (i, j) is ⊕ over k of a_ik ⊗ b_kj.

    Examples
    --------
    >>> import numpy as np
    >>> from semiring import MIN_PLUS, TROPICAL_ARGMIN, matmul
    >>> hours = np.array([[0.0, 4.0], [np.inf, 0.0]])
    >>> matmul(hours, np.array([[1.0, 9.0], [2.0, 3.0]]), MIN_PLUS)
    array([[1., 7.],
           [2., 3.]])
    >>> matmul(hours, np.array([7.0, 1.0]), TROPICAL_ARGMIN)
    Witnessed(values=array([5., 1.]), witness=array([1, 1], dtype=int32))

    Parameters
    ----------
    a : array of shape (…, m, k) or (k,)
    b : array of shape (…, k, n) or (k,)
        Arrays of any library, as for `apsp`. One- and more-dimensional ones are combined as by `numpy.matmul`; any strides. Over a
        structured semiring an operand is a tuple of equally shaped arrays, one a component. The dtypes of a and b are promoted to a
        common one, in which ∞ stays ∞; float16 and int8 are computed in float32 and int16, and integers 0 and 1 are truth values over a
        semiring on those.
    semiring : Semiring
        Marked by `Semiring.with_witness`, it asks for the witness too.
    c : array of the result's shape, optional
        The result is c ⊕ a ⊗ b; a tie keeps c. It is never modified.
    out : array of the result's shape and dtype, optional
        Where the result is put. It may be `c`, `a` or `b` itself, and of any library whose arrays change (not JAX's; before NumPy 2.2
        none that comes by DLPack to the host); on a GPU where an operand is.
    witness : bool
        Also return which k won. ⊕ must be selective.
    device : {"auto", "cpu", "cuda", "cuda:0", …, "reference"}
        Where it is computed. Arrays on a GPU stay there, and so does the result; NumPy's go to them, those of other libraries do not.
    threads : int, optional
        Threads of the CPU engine; by default ``SEMIRING_NUM_THREADS``, or all cores.
    check : bool
        Whether the numbers of the operands are looked at, to refuse what raises `DomainError` or `OverflowRiskError`. The product of what
        is not refused is the same without; of anything else it is meaningless, and nothing tells. On a GPU a product without checks is
        only launched: nothing waits for it, so that it can be recorded in a CUDA graph, CuPy's or PyTorch's, if the operands have the
        dtype of the product and a call like it came before. Whether large products of float32 take a faster kernel, because no distance is
        negative, the GPU finds out itself.

    Returns
    -------
    array, tuple of arrays, or Witnessed
        The product (a tuple over a structured semiring); with `witness`, a named tuple ``(values, witness)``. It is of the library and
        on the device of `out`, or else of the first operand that is not NumPy's.

    Raises
    ------
    ShapeError
        Operands that do not fit each other, `c` or `out`, or lie on different devices.
    GraphError
        An array that cannot be read where it lies, such as a tensor that requires a gradient, or that has labels or masked entries.
    DTypeError
        A dtype in which the semiring has no meaning.
    DomainError
        An operand with NaN or an element outside the carrier.
    OverflowRiskError
        Numbers so large that the product could leave the dtype: integers, and floats where ⊕ only compares, so that an ∞ from an
        overflow would pass for "no path". Where ⊕ adds (`PLUS_TIMES`, `LOG`) that ∞ is ordinary IEEE 754 arithmetic, and is returned.
    LawError
        A witness is asked for and ⊕ is not selective.
    TooLargeError
        A GPU that has not the memory.

    Notes
    -----
    m·n·k steps. A few MiB of scratch a thread. Results are the same bits on any number of threads. Engines and processors add up in
    orders of their own: where ⊕ is selective or the data is exactly representable they agree too, otherwise to rounding. On a GPU the work
    goes to the current stream: PyTorch's for its tensors, CuPy's for all others.
    """
    if type(semiring) is not Semiring or hasattr(witness, "shape") or hasattr(device, "shape") or hasattr(check, "shape"):
        require_semiring(semiring)
        refuse_arrays(witness=witness, device=device, check=check)
    options = bool(witness or semiring.witness), device, threads, bool(check)
    try:
        if type(a) is np.ndarray or type(b) is np.ndarray:
            return multiply(a, b, semiring, c, out, options)
        if type(a) is type(b) and c is out is None and (found := multiply_again(a, b, semiring, options)) is not None:
            return found
        with in_stream_of(_flat((a, b, c, out))):
            return multiply(a, b, semiring, c, out, options)
    except SemiringError as error:
        about(error, "the product", semiring, a, b)
        raise


def _flat(operands: tuple[Any, ...]) -> list[Any]:
    """The components of operands."""
    return [v for x in operands for v in (x if isinstance(x, tuple | list) else (x,))]
