"""Executor of sparse products and powers: read operands as stored, check numbers, and multiply compressed rows.

Compressed rows are the left factor of a kernel. Compressed columns are the rows of the transpose, and (AB)ᵀ is Bᵀ Aᵀ with the factors of ⊗
swapped. A product of two matrices by columns, or of a dense matrix and compressed columns, therefore needs no conversion.

The products of a power are sparse until a dense product is predicted to be faster. The prediction follows from the number of terms of the
next product, and is the same for every number of threads.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.devices import gpu_name, is_gpu, namespace, on_device, on_gpu
from semiring.arrays.exchange import comes_from, holds_sparse, is_sparse
from semiring.arrays.memory import fits, require_bytes, require_memory
from semiring.common.errors import GraphError, SemiringError, ShapeError
from semiring.execution.operands import WITNESS, Arrays, ProductForm, arrays_of, dtype_of, elements, form_of, matching, operand, restorer_of
from semiring.execution.product import in_callers_kind, with_witness
from semiring.execution.sparse_operands import SparseOperand, mask_of, require_places, sparse_operand
from semiring.graphs import edges_of
from semiring.kernels.compressed import CompressedRows
from semiring.kernels.limits import SafeRange
from semiring.kernels.operations import operations_for
from semiring.kernels.overflow.products import checks_for
from semiring.kernels.overflow.statistics import SMALL
from semiring.kernels.select import sparse_products_for
from semiring.planning import Problem, location
from semiring.planning.costs import product_seconds, sparse_product_seconds
from semiring.planning.options import named_device

if TYPE_CHECKING:
    from semiring.algorithms.chain import Stored

__all__ = ["multiply_sparse", "power_operand", "sparse_power"]


class _Call(NamedTuple):
    """Arguments that all steps of one call share."""

    semiring: Semiring
    form: ProductForm
    device: str
    threads: int | None
    witness: bool
    check: bool


def multiply_sparse(
    a: Any, b: Any, semiring: Semiring, c: Any, out: Any, mask: Any, complement: bool, options: tuple[bool, str, int | None, bool]
) -> Any:
    """Multiply operands, at least one sparse; return the product in the caller's kind. `semiring.matmul` describes the options."""
    witness, device, threads, check = options
    sparse_a, sparse_b = holds_sparse(a), holds_sparse(b)
    both = sparse_a and sparse_b
    if not both and (mask is not None or complement):
        raise SemiringError("a mask selects entries of a product of two sparse arrays; index a dense result instead")
    if complement and mask is None:
        raise SemiringError("complement=True selects the entries outside a mask; pass mask=")
    if both and not (c is out is None):
        raise SemiringError("c and out are for dense results; the product of two sparse arrays is a new one")
    left = sparse_operand(a, semiring, "a") if sparse_a else operand(a, semiring, "a")
    right = sparse_operand(b, semiring, "b") if sparse_b else operand(b, semiring, "b")
    (shape_a, kinds_a), (shape_b, kinds_b) = (
        (x.shape, x.dtypes) if isinstance(x, SparseOperand) else (x[0].array.shape, tuple(map(dtype_of, arrays_of(x))))
        for x in (left, right)
    )
    form = form_of(semiring, shape_a, kinds_a, shape_b, kinds_b, witness)
    there = _device(left, right, device, exact=any(d.kind == "O" for d in form.dtypes))
    call = _Call(semiring, form, there, threads, witness, check)
    if isinstance(left, SparseOperand):
        if isinstance(right, SparseOperand):
            return _sparse_result(call, left, right, mask, complement)
        return _dense_result(call, left, right, c, out, swapped=False)
    assert isinstance(right, SparseOperand)
    return _dense_result(call, right, left, c, out, swapped=True)


def _device(left: Any, right: Any, device: Any, *, exact: bool) -> str:
    """Return the device that computes the product: the device of the sparse operands."""
    given = [x for x in (left, right) if isinstance(x, SparseOperand)]
    arrays = [v for x in given for v in x.rows.values]
    place = location(tuple(arrays), device)
    there = named_device(device, place, exact=exact) or "cpu"
    if is_gpu(there) != is_gpu(place):
        raise SemiringError(f"device={device!r}, but the sparse array is on the host, where the product is computed; leave device out")
    if is_gpu(place) and not all(map(on_gpu, arrays)):
        raise ShapeError("one sparse array is on the host and the other on a GPU; copy both to one device")
    return place if is_gpu(place) else there


def _checked(call: _Call, operands: Sequence[Arrays], longest: int, names: tuple[str, str]) -> bool:
    """Refuse numbers that a dense product refuses; return True if a finite number could pull ∞ back."""
    checks = checks_for(call.semiring, call.form.dtypes, longest)
    signed, _ = checks.run(operands, call.threads, refuse=call.check, names=(*names, "c"))
    return signed


def _require_room(needed: int, what: str, device: str) -> None:
    require_bytes(needed, f"{what} would take", "multiply some rows at a time", device)


def _sparse_result(call: _Call, a: SparseOperand, b: SparseOperand, mask: Any, complement: bool) -> Any:
    """Multiply two sparse matrices; the product is stored by rows or columns like a, in the kind of a."""
    semiring, form, by_columns = call.semiring, call.form, a.by_columns
    with on_device(call.device):
        a, b = a.converted(form.dtypes, semiring, "a"), b.converted(form.dtypes, semiring, "b")
        longest = form.depth * a.most_duplicates() * b.most_duplicates()
        signed = _checked(call, (a.rows.values, b.rows.values), longest, ("a.data", "b.data"))
        there = is_gpu(call.device)
        wanted = None if mask is None else mask_of(mask, form.shape, complement=complement, by_columns=by_columns, there=there)
        first, second = (b.stored(by_columns=True), a.rows) if by_columns else (a.rows, b.stored(by_columns=False))
        if call.witness:
            first = first.in_order()
        entry = second.columns.itemsize + sum(d.itemsize for d in form.dtypes) + WITNESS.itemsize * call.witness

        def room(count: int) -> None:
            _require_room(count * entry, f"the product has {count:,} entries, and", call.device)

        products = sparse_products_for(semiring, form.dtypes, call.device, call.threads)
        product, via = products.times_sparse(first, second, room, wanted, witness=call.witness, swapped=by_columns, signed=signed)
        zero, _ = semiring.identities(form.dtypes)
        values = a.restored(product, product.values, zero, by_columns=by_columns)
        return with_witness(values, None if via is None else a.witness(product, via, by_columns=by_columns))


def _dense_result(call: _Call, sparse: SparseOperand, dense: tuple[Any, ...], c: Any, out: Any, *, swapped: bool) -> Any:
    """Multiply a sparse and a dense operand in the library of the dense one; `swapped` if the left one is dense."""
    semiring, form = call.semiring, call.form
    name, other = ("a", "b") if swapped else ("b", "a")
    lent_c = () if c is None else operand(c, semiring, "c")
    lent_out = () if out is None else operand(out, semiring, "out")
    there = is_gpu(call.device)
    for what, lent in ((name, dense), ("c", lent_c), ("out", lent_out)):
        if any(on_gpu(p.array) != there and (what == "out" or not there or p.restore is not None) for p in lent):
            sides = ("host", "GPU") if there else ("GPU", "host")
            raise ShapeError(f"{what} is on the {sides[0]}, and the sparse array on the {sides[1]}; copy both to one device")
    if lent_c:
        matching(lent_c, form.dtypes, form.shape, "c", exact=False)
    target = matching(lent_out, form.dtypes, form.shape, "out", exact=True) if lent_out else None
    _require_room(math.prod(form.full) * sum([d.itemsize for d in form.dtypes]), f"a result of shape {form.shape}", call.device)
    with on_device(call.device):
        sparse = sparse.converted(form.dtypes, semiring, other)
        given = elements(dense, form.dtypes, semiring, name, call.device)
        old = elements(lent_c, form.dtypes, semiring, "c", call.device) if lent_c else None
        pair, names = ((given, sparse.rows.values), ("a", "b.data")) if swapped else ((sparse.rows.values, given), ("a.data", "b"))
        rows = sparse.stored(by_columns=swapped)
        if call.witness:
            rows = rows.in_order()
        product = _SparseTimesDense(call, rows, given, old, swapped)
        found = product.multiplied_within() if there else None
        if found is None:
            longest = form.depth * sparse.most_duplicates()
            if there or (found := product.vector_within(longest)) is None:
                found = product.multiplied(_checked(call, pair if old is None else (*pair, old), longest, names))
        assert found is not None, "without a safe range, every number is accepted"
        values, via = found
        if target is not None:
            for place, v in zip(target, values, strict=True):
                place[...] = v
    return in_callers_kind(values, via, restorer_of(lent_out or dense), form.shape, out)


class _SparseTimesDense(NamedTuple):
    """Product of a sparse matrix and each matrix of a stack (`swapped`: in the other order), added to c if given.

    `given` is the dense operand and `old` is c.
    """

    call: _Call
    rows: CompressedRows
    given: Arrays
    old: Arrays | None
    swapped: bool

    def multiplied_within(self) -> tuple[Arrays, Any] | None:
        """Multiply on a GPU and check the numbers in the same pass; return None if a number is outside the safe range."""
        call, (m, depth) = self.call, self.rows.shape
        checks = checks_for(call.semiring, call.form.dtypes, max(len(self.rows.columns), 1))  # the most terms of a sum
        if not checks.asked(refuse=call.check):
            return self.multiplied(signed=False)
        empty = 0 in (m, depth, *call.form.full)
        return None if empty or checks.safe is None else self.multiplied(False, checks.safe)

    def vector_within(self, longest: int) -> tuple[Arrays, Any] | None:
        """Multiply a vector on the host and check the numbers in the same pass.

        None is returned if a number is outside the safe range of sums of `longest` terms, and if no kernel does both.
        """
        call, form, swapped, given = self.call, self.call.form, self.swapped, self.given
        checks = checks_for(call.semiring, form.dtypes, longest)
        products: Any = sparse_products_for(call.semiring, form.dtypes, call.device, call.threads)
        one = form.row if swapped else form.column
        if self.old or not (
            one and form.depth and checks.safe and checks.asked(refuse=call.check) and hasattr(products, "times_vector_within")
        ):
            return None
        B = tuple([v[:, None] for v in given])
        C = tuple([np.empty((math.prod(form.full), 1), d) for d in form.dtypes])
        via = np.empty(C[0].shape, WITNESS) if call.witness else None

        def is_safe() -> bool:
            return checks.are_safe([v[i : i + SMALL // v.itemsize] for v in given for i in range(0, len(v), SMALL // v.itemsize)])

        if not products.times_vector_within(self.rows, B, C, via, checks.safe, is_safe, swapped=swapped):
            return None
        return tuple([v.reshape(form.shape) for v in C]), None if via is None else via.reshape(form.shape)

    def multiplied(self, signed: bool, safe: SafeRange | None = None) -> tuple[Arrays, Any] | None:
        """Return the product in its shape, and the witness; None if a number is outside a safe range."""
        call, form, xp, swapped = self.call, self.call.form, namespace(self.given[0]), self.swapped
        products: Any = sparse_products_for(call.semiring, form.dtypes, call.device, call.threads)
        there = is_gpu(call.device)
        values = tuple([xp.empty(form.full, d) for d in form.dtypes])
        via = xp.empty(form.full, WITNESS) if call.witness else None
        olds = None if self.old is None else tuple([v.reshape(form.full) for v in self.old])
        one = form.row if swapped else form.column
        for index in np.ndindex(*form.batch):
            parts = [v if one else v[index].T if swapped else v[index] for v in self.given]
            B = tuple([_by_rows(v[:, None] if one else v) for v in parts])
            # Cᵀ = Bᵀ ⊗ Aᵀ
            C = tuple([xp.empty(v.shape[:-3:-1], v.dtype) if swapped else v[index] for v in values])
            k = None if via is None else xp.empty(C[0].shape, WITNESS) if swapped else via[index]
            if not there:
                products.times_dense(self.rows, B, C, k, swapped=swapped, signed=signed)
            else:
                if olds is not None:
                    for new, v in zip(C, olds, strict=True):
                        new[...] = v[index].T if swapped else v[index]
                options = {"swapped": swapped, "signed": signed, "fresh": olds is None, "safe": safe}
                if not products.times_dense_within(self.rows, B, C, k, **options):
                    return None
            if swapped:
                for v, w in zip(values, C, strict=True):
                    v[index] = w.T
                if via is not None and k is not None:
                    via[index] = k.T
        values, via = tuple([v.reshape(form.shape) for v in values]), None if via is None else via.reshape(form.shape)
        if there or self.old is None:
            return values, via
        return _added(call, self.old, values, via)


def _added(call: _Call, old: Arrays, values: Arrays, via: Any) -> tuple[Arrays, Any]:
    """Return c ⊕ a product, and the witness, −1 where c stays."""
    sums = operations_for(call.semiring, call.form.dtypes).add(old, values)
    if via is not None:
        via[np.logical_and.reduce([x == y for x, y in zip(sums, old, strict=True)])] = -1
    return tuple(map(np.asarray, sums)), via


def _by_rows(matrix: Any) -> Any:
    """Return the matrix, copied unless the elements of a row are adjacent and the distance of rows is a multiple of the item size."""
    size = matrix.itemsize
    side_by_side = matrix.shape[1] == 1 or matrix.strides[1] == size
    whole = matrix.strides[0] % size == 0 and getattr(matrix.flags, "aligned", True)
    return matrix if side_by_side and whole else namespace(matrix).ascontiguousarray(matrix)


# Powers.


def power_operand(a: Any, semiring: Semiring, *, nonedge: Any, dtype: Any, weight: Any) -> CompressedRows:
    """Read the rows of the base of a power: on the host like a graph, on a GPU as stored.

    ShapeError is raised if the matrix is not square. GraphError is raised for indices outside the shape, and for options that a matrix
    on a GPU does not have.
    """
    first, *_ = parts = a if isinstance(a, tuple | list) else (a,)
    if comes_from(first, "cupyx"):
        if weight is not None or nonedge is not None or semiring.components > 1:
            raise GraphError("weight=, nonedge= and structured elements are for sparse arrays on the host; pass .get()")
        given = sparse_operand(a, semiring, "a")
        given.rows.require_sound()
        if given.shape[0] != given.shape[1]:
            raise ShapeError(f"a graph is a square matrix, not a sparse array of shape {given.shape}")
        dtypes = given.dtypes if dtype is None else (np.dtype(dtype),)
        return given.converted(dtypes, semiring, "a").stored(by_columns=False)
    for part in parts:
        if comes_from(part, "scipy"):
            require_places(part, "a")  # because SciPy does not check indices
    edges = edges_of(a, semiring, nonedge=nonedge, dtype=dtype, weight=weight)
    assert edges is not None
    csr, _ = edges
    return CompressedRows((csr.n, csr.n), csr.starts, csr.heads, csr.weights)


def sparse_power(a: Any, rows: CompressedRows, k: int, semiring: Semiring, multiply: Callable[[Any, Any], Any], *, dense: bool) -> Any:
    """Return A^k in the caller's kind of sparse array, stored by rows, without entries that are zero.

    `a` is the base as passed, and `rows` the base as read, on the host or on a GPU. `multiply` takes two sparse or dense matrices, each an
    array or (for structured elements) a tuple of arrays. With `dense`, all products are dense: a matrix of the host is multiplied on a GPU.
    """
    from semiring.algorithms.chain import power  # only where a power is wanted: a first call should be quick

    dtypes, n, xp = tuple([v.dtype for v in rows.values]), rows.shape[0], namespace(rows.values[0])
    zero, one = semiring.identities(dtypes)
    if dense:
        require_memory(n, dtypes)

    def product(x: Any, y: Any) -> Any:
        left, right = (v if isinstance(v, tuple) else (v,) for v in (x, y))
        sparse = is_sparse(left[0]) and is_sparse(right[0])
        if dense or (sparse and _fills(semiring, dtypes, left[0], right[0])):
            x, y = (tuple(map(_dense, part, zero)) if is_sparse(part[0]) else part for part in (left, right))
            x, y = (v if len(v) > 1 else v[0] for v in (x, y))
        return multiply(x, y)

    if k == 0:
        found = CompressedRows((n, n), xp.arange(n + 1), xp.arange(n), tuple([xp.full(n, e, d) for e, d in zip(one, dtypes, strict=True)]))
    else:
        scipy: Any = importlib.import_module("cupyx.scipy.sparse" if on_gpu(rows.values[0]) else "scipy.sparse")
        matrix = tuple([scipy.csr_matrix((w, rows.columns, rows.starts), shape=(n, n)) for w in rows.values])
        found = _without_zeros(power(matrix, k, semiring, product, _entries), zero)
    values = SparseOperand(found, False, a).restored(found, found.values, zero, by_columns=False)
    return values[0] if len(values) == 1 else values


def _fills(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], x: Any, y: Any) -> bool:
    """Return True if a sparse product is predicted to take longer than a dense one, and three dense matrices fit the memory."""
    n, device = x.shape[0], gpu_name(x.data.device.id) if on_gpu(x.data) else "cpu"
    terms = int((y.indptr[1:] - y.indptr[:-1])[x.indices].sum(dtype=np.int64))
    problem = Problem("product", semiring, dtypes, (n, n), n, device, threads=1)
    slower = sparse_product_seconds(problem, terms, device) > product_seconds(problem, device)
    return slower and fits(3 * problem.result_bytes, device)


def _dense(x: Any, zero: Any) -> Any:
    """Return one component of a matrix in compressed rows as a dense array."""
    out = namespace(x.data).full(x.shape, zero, x.dtype)
    out[CompressedRows(x.shape, x.indptr, x.indices, (x.data,)).row_numbers(), x.indices] = x.data
    return out


def _entries(values: Arrays) -> Stored:
    """Return the stored elements of a matrix, for checks, and a function from their positions to row and column."""
    if not is_sparse(values[0]):
        return values, tuple
    x = values[0]

    def where(index: tuple[int, ...]) -> tuple[int, ...]:
        (e,) = index
        return int((x.indptr <= e).sum()) - 1, int(x.indices[e])

    return tuple([v.data for v in values]), where


def _without_zeros(values: Arrays, zero: tuple[Any, ...]) -> CompressedRows:
    """Return the entries of a sparse or dense matrix that are not zero."""
    sparse = is_sparse(values[0])
    entries = tuple([v.data for v in values]) if sparse else values
    xp = namespace(entries[0])
    there = functools.reduce(xp.logical_or, [v != z for v, z in zip(entries, zero, strict=True)])
    kept = tuple([v[there] for v in entries])
    counts = (there if sparse else there.sum(axis=1)).cumsum()
    before = xp.concatenate([xp.zeros(1, counts.dtype), counts])
    if not sparse:
        return CompressedRows(values[0].shape, before, xp.nonzero(there)[1], kept)
    x = values[0]
    return CompressedRows(x.shape, before[x.indptr], x.indices[there], kept)
