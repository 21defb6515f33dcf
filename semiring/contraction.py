"""`einsum` contracts several arrays over a semiring: tensor networks, graphical models, and products of any shape."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from numbers import Number
from typing import Any

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.algebra.equations import law
from semiring.algebra.laws import require
from semiring.algorithms.contraction import Contraction, as_text, from_lists, left_to_right, parsed
from semiring.arrays.devices import in_stream_of
from semiring.arrays.exchange import holds_sparse
from semiring.arrays.threads import require_threads
from semiring.common.docstrings import described_by
from semiring.common.errors import GraphError, LawError, SemiringError, about, install_of, raised_here, refuse_arrays
from semiring.execution.contraction import contract, converted
from semiring.execution.operands import Arrays, flattened, matching, operand, restorer_of
from semiring.execution.product import in_callers_kind
from semiring.product import matmul

__all__ = ["einsum"]

_LAWS = ("1 is the identity of ⊗", "associative ⊗", "left distributive", "right distributive")


@raised_here
@described_by(matmul)
def einsum(
    subscripts: Any,
    *operands: Any,
    semiring: Semiring | str,
    optimize: Any = "auto",
    out: Any = None,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> Any:
    """Contract arrays over a semiring: ⊕ over the summed indices of the ⊗ of one element of each array.

    Examples
    --------
    A product of matrices, the largest sum of four numbers of a chain, and the best of each row:

    >>> import numpy as np, semiring as sr
    >>> a, b = np.array([[0.0, 4.0], [3.0, 1.0]]), np.array([[5.0, 2.0], [0.0, 1.0]])
    >>> sr.einsum("ij,jk->ik", a, b, semiring=sr.MIN_PLUS)
    array([[4., 2.],
           [1., 2.]])
    >>> sr.einsum("ab,bc,cd,de->", a, b, a, b, semiring=sr.MAX_PLUS)
    np.float64(13.0)
    >>> sr.einsum("ij->i", a, semiring=sr.MAX_PLUS)
    array([4., 3.])

    Parameters
    ----------
    subscripts : str
        Indices as of `numpy.einsum`: a letter an axis, commas between arrays, ``->`` before the indices of the result, and ``...`` for
        further axes. Or, without a string, each array followed by the list of its indices, and at last the list of the result's.
    *operands : arrays
        Arrays of any library. Axes of length 1 repeat. Dtypes are promoted to a common one, in which ∞ stays ∞. Over a structured semiring,
        each is a tuple of arrays.
    semiring : Semiring or str
        A semiring of the catalogue (also by name), or your own.
    optimize : str, False, sequence of tuples, or object
        Order of the contractions: the name or an object of opt_einsum, a list of steps such as ``[(1, 2), (0, 1)]``, or a tree of cotengra.
        "auto" asks opt_einsum if it is installed and ⊗ commutes; otherwise, and with False, arrays are contracted from left to right.
    out : array of the result's shape and dtype, optional
        Array for the result.

    Returns
    -------
    array, or tuple of arrays
        The contraction (a tuple over a structured semiring; a scalar of NumPy without indices). Library and device are those of `out`, or
        else of the first operand that is not NumPy's.

    Raises
    ------
    SemiringError
        If the subscripts are none, or the order is none of these operands.
    ShapeError
        If shapes do not fit the subscripts.
    LawError
        If ⊗ does not distribute over ⊕ or does not commute, and the order of several contractions would change the result.
    DTypeError, GraphError, DomainError, OverflowRiskError, TooLargeError
        If `matmul` raises the error for one of the contractions, or an array is sparse.

    Notes
    -----
    Each step is a product of matrices or of stacks of matrices, by `matmul`. An index of one array only is summed before, by a product with
    ones. Memory is that of the largest intermediate array, twice where axes have to be moved. Floats are rounded in the order of the steps.
    """
    if type(semiring) is not Semiring or hasattr(device, "shape") or hasattr(check, "shape"):
        semiring = as_semiring(semiring)
        refuse_arrays(device=device, check=check)
    if threads is not None:
        require_threads(threads)
    given = semiring.marked(False)
    if not isinstance(subscripts, str):
        subscripts, arrays_given = from_lists((subscripts, *operands))
        operands = tuple(arrays_given)
    try:
        if any(map(holds_sparse, operands)):
            raise GraphError("einsum takes dense arrays; multiply sparse arrays by matmul")
        lent = [operand(x, given, f"operand {i}") for i, x in enumerate(operands)]
        contraction = parsed(subscripts, [part[0].array.shape for part in lent])
        with in_stream_of(flattened((*operands, out))):
            arrays, dtypes = converted(lent, given)
            path = _path(contraction, given, dtypes, optimize)

            def product(a: Arrays, b: Arrays) -> Arrays:
                x, y = (v if given.components > 1 else v[0] for v in (a, b))
                found = matmul(x, y, given, device=device, threads=threads, check=check)
                return found if given.components > 1 else (found,)

            lent_out = () if out is None else operand(out, given, "out")
            target = matching(lent_out, dtypes, contraction.shape(contraction.output), "out", exact=True) if lent_out else None
            values = contract(contraction, path, arrays, given.identities(dtypes)[1], product)
            if target is not None:
                for v, w in zip(target, values, strict=True):
                    v[...] = w
                values = target
            restore = restorer_of(lent_out or tuple(x for part in lent for x in part))
            return in_callers_kind(values, None, restore, contraction.shape(contraction.output), out)
    except SemiringError as error:
        about(error, "the contraction", given, *operands)
        raise


def _path(contraction: Contraction, semiring: Semiring, dtypes: Any, optimize: Any) -> Sequence[Sequence[int]]:
    """Return the order of the contractions, after a check of the laws that it needs."""
    count, dense = len(contraction.inputs), left_to_right(len(contraction.inputs))
    if count == 1:
        return dense
    reordered = optimize is not False and (optimize != "auto" or count > 2)
    # Of objects that are no numbers, laws are tested with 0 and 1 only.
    tested = all(isinstance(one, Number) for one in semiring.identities(dtypes)[1])
    commutes = reordered and tested and law(semiring, dtypes, "commutative ⊗").status == "passed"
    if optimize == "auto" and not (commutes and importlib.util.find_spec("opt_einsum")):
        reordered = False
    if count > 2 or _sums_early(contraction):
        require(semiring, dtypes, *_LAWS, for_what="a contraction in several steps", instead="contract two arrays at a time with matmul")
    if not reordered:
        return dense
    if count > 2 and not commutes:
        require(semiring, dtypes, "commutative ⊗", for_what="another order of the operands", instead="pass optimize=False")
        raise LawError(
            f"another order of the operands needs a commutative ⊗, and that of {semiring.name} is not tested; pass optimize=False"
        )
    path = optimize.get_path() if hasattr(optimize, "get_path") else optimize
    if isinstance(path, list | tuple):
        return [step for step in path if not isinstance(step, str)]  # NumPy's begin with a name
    try:
        opt_einsum: Any = importlib.import_module("opt_einsum")
    except ImportError:
        raise SemiringError(f"optimize={optimize!r} needs opt_einsum: {install_of('einsum')}; or pass optimize=False") from None
    shapes = [contraction.shape(indices) for indices in contraction.inputs]
    found, _ = opt_einsum.contract_path(as_text(contraction), *shapes, shapes=True, optimize=optimize)
    return [tuple(step) for step in found]


def _sums_early(contraction: Contraction) -> bool:
    """Return True if an index of one operand only is summed."""
    a, b = contraction.inputs
    return bool((set(a) ^ set(b)) - set(contraction.output))
