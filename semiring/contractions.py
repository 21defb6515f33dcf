"""`einsum` contracts several arrays over a semiring: tensor networks, graphical models, and products of any shape.

`contract_expression` plans a contraction once for many arrays. `contraction` returns the functions with which opt_einsum, autoray and
cotengra contract over a semiring.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from numbers import Number
from typing import Any

import numpy as np

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.algebra.equations import law
from semiring.algebra.laws import require
from semiring.algorithms.contraction import Contraction, as_letters, from_lists, left_to_right, parsed
from semiring.arrays.devices import in_stream_of, namespace
from semiring.arrays.exchange import holds_sparse
from semiring.arrays.followed import is_compiling, is_recorded
from semiring.arrays.threads import require_threads
from semiring.common.docstrings import described_by
from semiring.common.errors import GraphError, LawError, SemiringError, ShapeError, about, install_of, raised_here, refuse_arrays
from semiring.common.html import Shown
from semiring.execution.contraction import contract, converted
from semiring.execution.operands import Arrays, DTypes, Lent, dtypes_of, flattened, matching, operand, restorer_of
from semiring.execution.product import Witnessed, in_callers_kind
from semiring.planning import size_of
from semiring.planning.contraction import ContractionPlan
from semiring.product import matmul

__all__ = ["contract_expression", "contraction", "einsum"]

_LAWS = ("1 is the identity of ⊗", "associative ⊗", "left distributive", "right distributive")


class ContractExpression(Shown):
    """A planned contraction, which is called with arrays; `contract_expression` makes it.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> best = sr.contract_expression("ij,jk->ik", (2, 3), (3, 2), semiring=sr.MAX_PLUS)
    >>> best(np.ones((2, 3)), np.zeros((3, 2)))
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(
        self,
        plan: ContractionPlan,
        shapes: tuple[tuple[int, ...], ...],
        semiring: Semiring,
        names: dict[str, Any],
        options: tuple[str, int | None, bool],
    ) -> None:
        self.plan, self._shapes, self._semiring, self._names = plan, shapes, semiring, names
        self._device, self._threads, self._check = options
        self._tested = set[DTypes]()  # dtypes in which the semiring has the laws of the plan

    @raised_here
    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """Contract arrays of the planned shapes.

        Parameters
        ----------
        *operands : arrays
            Arrays of any library.
        out : array of the result's shape and dtype, optional
            Array for the result.

        Returns
        -------
        array, tuple of arrays, or Witnessed
            The result of `einsum`.
        """
        try:
            lent = _lent(operands, self._semiring)
            shapes = [tuple(part[0].array.shape) for part in lent]
            if shapes != [*self._shapes]:
                raise ShapeError(f"the expression was planned for arrays of shapes {[*self._shapes]}; these have shapes {shapes}")
            dtypes = dtypes_of(lent, self._semiring)
            if dtypes not in self._tested:
                _require_laws(self.plan, self._shapes, self._semiring, dtypes)
                self._tested.add(dtypes)
            return self._contract(operands, lent, dtypes, out)
        except SemiringError as error:
            about(error, "the contraction", self._semiring, *operands)
            raise

    def _contract(self, operands: Sequence[Any], lent: Sequence[Lent], dtypes: DTypes, out: Any) -> Any:
        """Contract operands that fit the plan."""
        given, plan = self._semiring.marked(False), self.plan
        shape = plan.contraction.shape(plan.contraction.output)

        def multiply(a: Arrays, b: Arrays, c: Arrays | None = None, *, witness: bool) -> tuple[Arrays, Any]:
            one = given.components == 1
            x, y, z = (v if v is None or not one else v[0] for v in (a, b, c))
            found = matmul(x, y, given, c=z, witness=witness, device=self._device, threads=self._threads, check=self._check)
            values, via = found if witness else (found, None)
            return (values,) if one else values, via

        if any(map(is_recorded, operands)):
            from semiring.execution.gradients import operands_with_gradient

            alone = out is None and not plan.witness and not plan.sliced
            tensors, _ = operands_with_gradient(operands, given, alone=alone)
            values, _ = contract(
                plan, [x if isinstance(x, tuple) else (x,) for x in tensors], lambda: given.identities(dtypes)[1], multiply
            )
            return values if given.components > 1 else values[0]
        with in_stream_of(flattened((*operands, out))):
            arrays = converted(lent, dtypes, given)
            lent_out = () if out is None else operand(out, given, "out")
            target = matching(lent_out, dtypes, shape, "out", exact=True) if lent_out else None
            values, winners = contract(plan, arrays, lambda: given.identities(dtypes)[1], multiply)
            if target is not None:
                for v, w in zip(target, values, strict=True):
                    v[...] = w
                values = target
            restore = restorer_of(lent_out or tuple(x for part in lent for x in part))
            found = in_callers_kind(values, None, restore, shape, out)
            if not plan.witness:
                return found
            witness = {self._names.get(i, i): in_callers_kind((winners[i],), None, restore, shape, None) for i in sorted(winners)}
            return Witnessed(found, witness)

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the lines that Jupyter shows."""
        return self.plan.facts()

    def __repr__(self) -> str:
        return f"<{str(self.plan).partition(chr(10))[0]}>"


@raised_here
@described_by(matmul)
def einsum(
    subscripts: Any,
    *operands: Any,
    semiring: Semiring | str,
    optimize: Any = "auto",
    witness: bool = False,
    memory_limit: int | str | None = None,
    out: Any = None,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> Any:
    """Contract arrays over a semiring: ⊕ over the summed indices of the ⊗ of one element of each array.

    Examples
    --------
    A product of matrices, and the largest sum of four numbers of a chain with the indices that give it:

    >>> import numpy as np, semiring as sr
    >>> a, b = np.array([[0.0, 4.0], [3.0, 1.0]]), np.array([[4.0, 2.0], [0.0, 7.0]])
    >>> sr.einsum("ij,jk->ik", a, b, semiring=sr.MIN_PLUS)
    array([[4., 2.],
           [1., 5.]])
    >>> best = sr.einsum("ab,bc,cd,de->", a, b, a, b, semiring=sr.MAX_PLUS, witness=True)
    >>> best.values, {index: int(value) for index, value in best.witness.items()}
    (np.float64(19.0), {'a': 0, 'b': 1, 'c': 1, 'd': 1, 'e': 1})

    Parameters
    ----------
    subscripts : str
        Subscripts of `numpy.einsum`, with ``...``. Or each array followed by the list of its indices, and last the list of the result's.
    *operands : arrays
        Arrays of any library. Axes of length 1 repeat. Dtypes are promoted to a common one, in which ∞ stays ∞. Over a structured semiring,
        each is a tuple of arrays.
    semiring : Semiring or str
        A semiring of the catalogue (also by name), or your own.
    optimize : str, False, sequence of tuples, or object
        The order: a name or object of opt_einsum, steps such as ``[(1, 2), (0, 1)]``, or a tree of cotengra. "auto" asks opt_einsum if
        installed and ⊗ commutes. Otherwise, and with False, the order is from left to right.
    witness : bool
        Also return the winning value of each summed index. ⊕ must be selective.
    memory_limit : int or str, optional
        Bytes of intermediate arrays, such as "8GiB". Larger contractions are sliced.
    out : array of the result's shape and dtype, optional
        Array for the result.

    Returns
    -------
    array, tuple of arrays, or Witnessed
        The contraction (a tuple over a structured semiring). With `witness` ``(values, witness)``: the witness has an int32 array of the
        result's shape for each summed index, −1 where no term beats the zero.

    Other Parameters
    ----------------
    device, threads, check
        As for `matmul`.

    Raises
    ------
    ShapeError, SemiringError
        If shapes do not fit the subscripts, or the order does not fit the operands.
    LawError
        If ⊗ lacks a law that the order needs, such as distributivity, or ⊕ has no witness.
    DTypeError, GraphError, DomainError, OverflowRiskError, TooLargeError
        As for `matmul`; also if an array is sparse, or no slices keep the limit.

    Notes
    -----
    Each step is a product of matrices, or of stacks. Memory is that of the largest intermediate array, twice if axes are moved. A witness
    keeps 1 to 4 bytes for each element of each sum. Floats are rounded in the order of the steps. More: How-to, Contractions.
    """
    if is_compiling(subscripts, *operands):
        from semiring.execution.compiled import in_graph

        more = {"optimize": optimize, "witness": witness, "memory_limit": memory_limit, "out": out, "device": device}
        return in_graph(einsum, subscripts, *operands, semiring=semiring, threads=threads, check=check, **more)
    semiring, limit, options = _asked(semiring, memory_limit, device, threads, check)
    names: dict[str, Any] = {}
    if not isinstance(subscripts, str):
        subscripts, arrays_given, names = from_lists((subscripts, *operands))
        operands = tuple(arrays_given)
    try:
        lent = _lent(operands, semiring)
        shapes, dtypes = tuple([tuple(part[0].array.shape) for part in lent]), dtypes_of(lent, semiring)
        planned = _planned if optimize is False or isinstance(optimize, str) else _planned.__wrapped__  # others may not be hashable
        plan = planned(subscripts, shapes, semiring, dtypes, optimize, limit, witness=witness)
        return ContractExpression(plan, shapes, semiring, names, options)._contract(operands, lent, dtypes, out)
    except SemiringError as error:
        about(error, "the contraction", semiring, *operands)
        raise


@raised_here
@described_by(einsum)
def contract_expression(
    subscripts: str,
    *shapes: Sequence[int],
    semiring: Semiring | str,
    optimize: Any = "auto",
    witness: bool = False,
    memory_limit: int | str | None = None,
    dtype: Any = None,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> ContractExpression:
    """Plan the contraction of arrays of these shapes once, to be called with many arrays.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> chain = sr.contract_expression("ab,bc,cd->ad", (2, 9), (9, 9), (9, 2), semiring=sr.MIN_PLUS)
    >>> chain(np.ones((2, 9)), np.ones((9, 9)), np.ones((9, 2)))
    array([[3., 3.],
           [3., 3.]])
    >>> chain.plan.steps
    198

    Parameters
    ----------
    subscripts, semiring, optimize, witness, memory_limit
        As for `einsum`.
    *shapes : tuples of int
        The shapes of the arrays.
    dtype : dtype or sequence of dtype, optional
        Dtypes for which the laws of the semiring are tested; by default the usual ones of the semiring.

    Returns
    -------
    ContractExpression
        A function of arrays, and of ``out=``. Its `plan` prints order, steps, the largest intermediate array and slices.

    Other Parameters
    ----------------
    device, threads, check
        As for `matmul`.

    Raises
    ------
    SemiringError, ShapeError, LawError, TooLargeError
        As for `einsum`.

    Notes
    -----
    A plan takes no memory for arrays. More: How-to, Contractions.
    """
    semiring, limit, options = _asked(semiring, memory_limit, device, threads, check)
    dtypes = semiring.dtypes(semiring.usual_dtypes if dtype is None else dtype)
    given = tuple([tuple(map(int, shape)) for shape in shapes])
    plan = _planned.__wrapped__(subscripts, given, semiring, dtypes, optimize, limit, witness=witness)
    return ContractExpression(plan, given, semiring, {}, options)


class Contractor(types.ModuleType):
    """The functions of one semiring that opt_einsum, autoray and cotengra call; `contraction` makes it.

    ``__name__`` is the name of a module with these functions. Iteration gives ``(einsum, tensordot)``.
    """

    def __init__(self, name: str, semiring: Semiring) -> None:
        super().__init__(name, f"Contractions over {semiring.name}.")
        self.semiring = semiring

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter((self.einsum, self.tensordot))

    def einsum(self, subscripts: str, *operands: Any, out: Any = None) -> Any:
        """Contract arrays from left to right, as `semiring.einsum` does."""
        return einsum(subscripts, *operands, semiring=self.semiring, optimize=False, out=out)

    def tensordot(self, a: Any, b: Any, axes: Any = 2) -> Any:
        """Contract two arrays over the last axes of `a` and the first of `b`, or over two lists of axes, as `numpy.tensordot` does."""
        pairs = (range(-axes, 0), range(axes)) if isinstance(axes, int | np.integer) else axes
        first, second = ([x] if isinstance(x, int | np.integer) else list(x) for x in pairs)
        left, right = list(range(a.ndim)), list(range(a.ndim, a.ndim + b.ndim))
        for i, j in zip(first, second, strict=True):
            right[j] = left[i]
        kept = [i for i in (*left, *right) if (i in left) != (i in right)]
        return einsum(a, left, b, right, kept, semiring=self.semiring, optimize=False)

    @staticmethod
    def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
        """Permute the axes of an array."""
        return namespace(a).transpose(a, axes) if axes is not None else namespace(a).transpose(a)


@raised_here
def contraction(semiring: Semiring | str) -> Contractor:
    """Return the functions with which opt_einsum, autoray and cotengra contract over a semiring.

    Cotengra adds the slices of a sliced tree as numbers, and divides by exponents with ``strip_exponent=True``: pass such a tree to
    ``einsum(optimize=tree)`` instead.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> best, a = sr.contraction("max-plus"), np.array([[0.0, 4.0], [3.0, 1.0]])
    >>> best.tensordot(a, a, 1)
    array([[7., 5.],
           [4., 7.]])

    The name is a backend of opt_einsum and autoray; cotengra takes the pair of functions:

    >>> import opt_einsum
    >>> opt_einsum.contract("ab,bc,cd->ad", a, a, a, backend=best.__name__)
    array([[ 8., 11.],
           [10.,  8.]])
    >>> tree.contract(arrays, implementation=best)  # doctest: +SKIP

    Parameters
    ----------
    semiring : Semiring or str
        A semiring of the catalogue (also by name), or your own. ⊗ must commute.

    Returns
    -------
    Contractor
        A module with `einsum`, `tensordot` and `transpose`, also for ``implementation=`` of cotengra.
    """
    return _contractor(as_semiring(semiring).marked(False))


@functools.cache
def _contractor(semiring: Semiring) -> Contractor:
    name = f"{__name__}.{semiring.name.replace('-', '_').replace(' ', '_')}"
    while name in sys.modules:  # two semirings may have one name
        name += "_"
    made = sys.modules[name] = Contractor(name, semiring)
    return made


def _asked(
    semiring: Semiring | str, memory_limit: int | str | None, device: Any, threads: int | None, check: Any
) -> tuple[Semiring, int | None, tuple[str, int | None, bool]]:
    """Return the semiring, the limit in bytes, and the options of products."""
    semiring = as_semiring(semiring)
    refuse_arrays(device=device, check=check)
    if threads is not None:
        require_threads(threads)
    return semiring, None if memory_limit is None else size_of(memory_limit), (device, threads, bool(check))


def _lent(operands: Sequence[Any], semiring: Semiring) -> list[Lent]:
    if any(type(x) is not np.ndarray and holds_sparse(x) for x in operands):
        raise GraphError("einsum takes dense arrays; multiply sparse arrays by matmul")
    if not operands:
        raise SemiringError("einsum takes one array at least, after its subscripts")
    if any(map(is_recorded, operands)):
        from semiring.execution.gradients import stand_in

        operands = [stand_in(x) for x in operands]
    return [operand(x, semiring, f"operand {i}") for i, x in enumerate(operands)]


@functools.lru_cache(maxsize=256)
def _planned(
    subscripts: str,
    shapes: tuple[tuple[int, ...], ...],
    semiring: Semiring,
    dtypes: DTypes,
    optimize: Any,
    limit: int | None,
    *,
    witness: bool,
) -> ContractionPlan:
    """Plan the order and the slices, after a check of the laws that they need."""
    contraction = parsed(subscripts, shapes)
    witness = bool(witness or semiring.witness)
    if witness:
        semiring.require_selective()
    plan = ContractionPlan(
        contraction, _path(contraction, semiring, dtypes, optimize), semiring.name, sum(d.itemsize for d in dtypes), witness
    )
    _require_laws(plan, shapes, semiring, dtypes)
    if len(contraction.inputs) > 1 and (sliced := getattr(optimize, "sliced_inds", None)):
        plan = plan.with_slices(tuple(sliced))
    return plan if limit is None else plan.within(limit)


def _path(contraction: Contraction, semiring: Semiring, dtypes: DTypes, optimize: Any) -> Sequence[Sequence[int]]:
    """Return the order of the products."""
    count = len(contraction.inputs)
    if optimize == "auto" and not (count > 2 and importlib.util.find_spec("opt_einsum") and _commutes(semiring, dtypes)):
        optimize = False
    if count == 1 or optimize is False:
        return left_to_right(count)
    tree: Any = optimize
    path = tree.get_path() if hasattr(tree, "get_path") else optimize
    if isinstance(path, list | tuple):
        return [step for step in path if not isinstance(step, str)]  # NumPy's begin with a name
    try:
        opt_einsum: Any = importlib.import_module("opt_einsum")
    except ImportError:
        raise SemiringError(f"optimize={optimize!r} needs opt_einsum: {install_of('einsum')}; or pass optimize=False") from None
    shapes = [contraction.shape(indices) for indices in contraction.inputs]
    found, _ = opt_einsum.contract_path(as_letters(contraction)[0], *shapes, shapes=True, optimize=optimize)
    return [tuple(step) for step in found]


def _require_laws(plan: ContractionPlan, shapes: Sequence[tuple[int, ...]], semiring: Semiring, dtypes: DTypes) -> None:
    """Refuse a semiring without the laws that the order of a plan needs."""
    lengths, output = plan.contraction.lengths, plan.contraction.output
    # Axes of length 1 that repeat are dropped.
    inputs = [
        {i for i, n in zip(indices, shape, strict=True) if n == lengths[i]}
        for indices, shape in zip(plan.contraction.inputs, shapes, strict=True)
    ]
    if len(inputs) == 1 and inputs[0] - set(output):  # a product with ones
        require(semiring, dtypes, _LAWS[0], for_what="a sum over one array", instead="add the elements yourself")
    # An index of one operand only is summed before a product.
    early = len(inputs) == 2 and (inputs[0] ^ inputs[1]) - set(output)
    if len(inputs) > 2 or early:
        require(semiring, dtypes, *_LAWS, for_what="a contraction in several steps", instead="contract two arrays at a time with matmul")
    if len(inputs) > 2 and [tuple(places) for places in plan.path] != left_to_right(len(inputs)) and not _commutes(semiring, dtypes):
        require(semiring, dtypes, "commutative ⊗", for_what="another order of the operands", instead="pass optimize=False")
        raise LawError(f"another order of the operands needs a commutative ⊗; {semiring.name} is not tested, so pass optimize=False")


@functools.lru_cache(maxsize=256)
def _commutes(semiring: Semiring, dtypes: DTypes) -> bool:
    """Return True if ⊗ commutes; of objects that are no numbers, laws are tested with 0 and 1 only."""
    numbers = all(isinstance(one, Number) for one in semiring.identities(dtypes)[1])
    return numbers and law(semiring, dtypes, "commutative ⊗").status == "passed"
