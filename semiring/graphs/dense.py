"""Arrays as dense matrices over a semiring: borrowed unchanged, or rewritten if an entry has to change.

`Graph` is the matrix, `Reading` has the options, and `nonedges` is the test for missing edges.
"""

from __future__ import annotations

import functools
import math
import operator
import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array, Place, conversions, first, nan, refuse_nan, refuse_text, require_inside, widened, written_as
from semiring.arrays.devices import device_of, equal, namespace, on_gpu
from semiring.arrays.exchange import ArrayLike
from semiring.arrays.memory import ALWAYS_FITS, require_memory
from semiring.arrays.pieces import row_slices
from semiring.common.errors import DTypeError, GraphError, SemiringError, ShapeError, brief, callers_level
from semiring.kernels.limits import ValueStatistics, absorbing
from semiring.kernels.overflow.products import depends_on_values
from semiring.kernels.overflow.statistics import begin_statistics, gpu_kernels, surely_elements, value_statistics

__all__ = [
    "Form", "Graph", "NonEdgeWarning", "Reading", "RunningStatistics", "entry_name", "matches", "matrix_form", "nonedges", "read_dense",
]  # fmt: skip

DTypes = tuple[np.dtype[Any], ...]
Inputs = tuple[ArrayLike, ...]
Values = tuple[Array, ...]

_OBJECT = np.dtype(object)

_BYTES_AT_MOST = 64  # largest size of an entry; small matrices skip the memory check

_array_of, _dtype_of, _shape_of = map(operator.attrgetter, ("array", "array.dtype", "array.shape"))


class NonEdgeWarning(UserWarning):
    """A dense matrix has no missing edge, but zeros, or infinities of the other sign, that look like missing edges."""


class Reading(NamedTuple):
    """The options of `read_graph`; `closed` keeps edges whose weight is the semiring's zero."""

    nonedge: Any = None
    dtype: Any = None
    overwrite: bool = False
    presence: bool = False
    paths: bool = False
    check: bool = True
    closed: bool = False


@dataclass(eq=False, slots=True)
class Graph:
    """A matrix over a semiring, read from the caller's graph."""

    # one array of shape (…, n, n) for each component of an element; any strides. A missing edge is the semiring's zero
    values: Values
    owned: bool  # the arrays may be overwritten. Otherwise they are the caller's memory
    labels: tuple[Hashable, ...] | None = None  # the vertices in the order of the rows; None for 0 … n − 1
    # converts a result to the caller's type; None for arrays
    restore: Callable[[Array], Any] | None = field(default=None, repr=False)
    # converts any array, such as a construction matrix, to an array of the caller's library
    library: Callable[[Array], Any] | None = field(default=None, repr=False)
    # returns the value statistics of each component and raises their errors, before a result is made: a GPU may still be computing them.
    # None without statistics
    verify: Callable[[], Sequence[ValueStatistics]] | None = field(default=None, repr=False)
    late: bool = field(default=True, repr=False)  # `verify` may run after `values` have changed: it does not read them anymore

    @property
    def n(self) -> int:
        """The number of vertices."""
        return int(self.values[0].shape[-1])

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of several graphs in one array."""
        return tuple(self.values[0].shape[:-2])

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtype of each component."""
        return tuple(v.dtype for v in self.values)

    def working(self) -> tuple[Array, ...]:
        """Return arrays that a closure may overwrite: `values` if owned, else C-contiguous copies."""
        return self.values if self.owned else tuple(map(_copy, self.values))

    def restore_part(self, rows: Array, columns: Array) -> Callable[[Array], Any] | None:
        """Return `restore` for some rows and columns of a result."""
        part = getattr(self.restore, "part", None)
        return self.restore if part is None else part(rows, columns)

    def answer(self, *results: Array) -> Any:
        """Convert a result to the caller's type: an array, or a tuple of arrays for structured elements."""
        restored = results if self.restore is None else tuple(self.restore(r) for r in results)
        return restored[0] if len(restored) == 1 else restored


def _copy(array: Any) -> Any:
    copy = namespace(array).empty(array.shape, array.dtype)
    if on_gpu(array):
        from semiring.kernels.cuda.blocks import copy_into

        copy_into(array, copy)
    else:
        np.copyto(copy, array)
    return copy


class Form(NamedTuple):
    """The properties of a matrix over a semiring that follow from dtypes alone."""

    dtypes: DTypes
    zeros: tuple[Any, ...]  # the element of a missing edge
    kept: bool  # the given arrays have these dtypes
    needs_statistics: bool  # value statistics decide whether the numbers are elements, and which kernels a closure needs
    infinities: tuple[int, ...]  # integers that stand for an infinite zero
    zeros_may_mean_missing: bool  # zeros off the diagonal deserve a warning if no entry is ∞
    infinities_may_mean_missing: bool  # infinities equal to the semiring's one deserve a warning if no entry is its zero


def matrix_form(inputs: Inputs, semiring: Semiring, reading: Reading) -> Form:
    """Return the form of the matrix read from arrays, one for each component of an element. Raises DTypeError."""
    own = tuple(map(_dtype_of, inputs))
    if reading.dtype is None and _OBJECT not in own:
        return _usual_form(semiring, own)
    return _form(semiring, own, _element_dtypes(inputs, semiring, reading))


@functools.lru_cache(maxsize=1024)
def _usual_form(semiring: Semiring, own: DTypes) -> Form:
    numbers = tuple(map(widened, own))  # refuses unsupported dtypes
    return _form(semiring, own, (np.dtype(bool),) if semiring.on_truth_values else semiring.dtypes(numbers))


def _form(semiring: Semiring, own: DTypes, dtypes: DTypes) -> Form:
    needs_statistics = _OBJECT not in dtypes and depends_on_values(semiring, dtypes)
    try:
        zeros = semiring.identities(dtypes)[0]
    except DTypeError as error:
        if any(d.kind == "b" for d in dtypes) and any(d.kind == "b" for d in own):
            raise DTypeError(f"{error} (dtype=np.float64, with nonedge=False where False means 'no edge')") from None
        raise
    return Form(
        dtypes,
        zeros,
        own == dtypes,
        needs_statistics,
        absorbing(semiring, dtypes) if needs_statistics else (),
        *_may_mean_missing(semiring, dtypes),
    )


def read_dense(inputs: Inputs, semiring: Semiring, reading: Reading, form: Form | None = None) -> Graph:
    """Read a `Graph` from one array for each component of an element; all on the host, or on the current GPU."""
    form = form or matrix_form(inputs, semiring, reading)
    dtypes, kept, (first, *_) = form.dtypes, form.kept, inputs
    if not kept and first.library is not None:
        for dtype in dtypes:  # fails early if the caller's library lacks a dtype
            first.library(namespace(first.array).empty(0, dtype))
    in_place = reading.overwrite and kept and overwritable(inputs)
    if first.array.size * _BYTES_AT_MOST > ALWAYS_FITS:
        shape, helps = matrix_shape(inputs), kept and overwritable(inputs)
        how: dict[str, Any] = {"batch": shape[:-2], "device": device_of(first.array), "overwriting_helps": helps}
        require_memory(shape[-1], () if in_place else dtypes, via=reading.paths, **how)
    if kept and needs_no_change(inputs, semiring, reading.nonedge, form.zeros):
        values, owned = tuple(map(_array_of, inputs)), in_place
    else:
        shape, empty = matrix_shape(inputs), namespace(first.array).empty
        values, owned = tuple(s.array if in_place else empty(shape, d) for s, d in zip(inputs, dtypes, strict=True)), True
        rewrite(inputs, values, semiring, reading, form.zeros)
    graph = Graph(values, owned, first.labels, first.restore, first.library)
    if not reading.check:
        return graph
    warns = reading.nonedge is None and (form.zeros_may_mean_missing or form.infinities_may_mean_missing)
    if not form.needs_statistics:
        _require_elements(semiring, values)
        if warns and form.zeros_may_mean_missing and not any(matches(values[0][p], form.zeros[0]).any() for p in row_slices(values[0])):
            warn_of_zeros(int((values[0] == 0).sum()) - _zeros_on_diagonal(values[0]), semiring.zero)
        return graph

    def checked(statistics: Sequence[ValueStatistics]) -> Sequence[ValueStatistics]:
        _require_elements(semiring, values, statistics)
        found = statistics[0]
        if warns and not _has_infinity(found, semiring):
            if form.zeros_may_mean_missing and found.zeros:
                warn_of_zeros(found.zeros - _zeros_on_diagonal(values[0]), semiring.zero)
            if form.infinities_may_mean_missing and _has_infinity(found, semiring, opposite=True):
                _warn_of_infinities(_opposite_infinities_off_diagonal(values[0], semiring), semiring)
        return statistics

    if type(values[0]) is np.ndarray or not on_gpu(values[0]):
        statistics = checked(value_statistics(values, form.infinities))
        graph.verify = lambda: statistics
    elif gpu_kernels().is_compiled(values):
        begun = begin_statistics(values, form.infinities)
        graph.verify = lambda: checked(begun())
    else:  # compiled beside the kernels of the closure, all at once
        graph.late, graph.verify = False, lambda: checked(value_statistics(values, form.infinities))
    return graph


def _require_elements(semiring: Semiring, values: Values, statistics: Sequence[ValueStatistics] | None = None, *, first: int = 0) -> None:
    """Refuse an entry that is no element, in a matrix or a block row from row `first` on; `statistics` make the check quick."""
    if statistics is None or not surely_elements(semiring, values, statistics):
        require_inside(semiring, values, "graph", of_graph=True, first=first)


def matrix_shape(inputs: Inputs) -> tuple[int, ...]:
    """Return the shape of square matrices, with the leading axes of a batch."""
    shape, *others = map(_shape_of, inputs)
    if others and len(shapes := {*map(tuple, (shape, *others))}) > 1:
        raise ShapeError(f"the components of a matrix need one shape, not {' and '.join(map(str, sorted(shapes)))}")
    if len(shape) < 2 or shape[-1] != shape[-2]:
        advice = "; sr.edges reads a list of edges" if len(shape) == 2 and shape[1] in (2, 3) else ""
        raise ShapeError(f"a graph is a square matrix (or several, of shape (…, n, n)), not an array of shape {tuple(shape)}{advice}")
    return tuple(shape)


def _element_dtypes(inputs: Inputs, semiring: Semiring, reading: Reading) -> DTypes:
    """Return the dtypes of the matrix: the requested ones, bool over truth values, or the arrays' own."""
    if reading.dtype is not None:
        for given in inputs:
            if given.array.dtype.kind not in "biufO":
                widened(given.array.dtype)  # raises the reason
        return semiring.dtypes(reading.dtype)
    own = tuple(widened(s.array.dtype) for s in inputs)
    if semiring.on_truth_values:
        given = inputs[0]
        there = given.array if given.missing is None else given.array[~given.missing]
        # Symbols give formulas, and SymPy numbers SymPy matrices.
        if own[0].kind != "O" or (reading.presence and all(isinstance(v, int | float | Fraction | np.generic) for v in there.flat)):
            return (np.dtype(bool),)
    for given in inputs:
        if given.rounded is not None:
            index, integer = given.rounded
            raise DTypeError(
                f"{entry_name(index)} is {brief(integer)}, which float64 would round, and other entries are floats; pass dtype=object for "
                "exact numbers, or dtype=np.float64 to accept that"
            )
    return semiring.dtypes(own)


def overwritable(inputs: Inputs) -> bool:
    """Return True if the arrays can be overwritten entry by entry: no two entries share memory."""
    arrays = [s.array for s in inputs]
    for array in arrays:
        if not (_flag(array, "writeable") and _flag(array, "aligned")):
            return False
        if array.flags.c_contiguous:
            continue
        span = array.itemsize
        for stride, length in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
            if stride < span:
                return False
            span = stride * length
    if any(s.constant for s in inputs):
        return False
    return not any(namespace(a).may_share_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


def _flag(array: Array, name: str) -> bool:
    """Return a NumPy flag; CuPy's and Zarr's arrays lack it, and are all writable and aligned."""
    return bool(getattr(getattr(array, "flags", None), name, True))


def needs_no_change(inputs: Inputs, semiring: Semiring, nonedge: Any, zeros: tuple[Any, ...]) -> bool:
    """Return True if matrices of the right dtypes already have the semiring's zero for every missing edge."""
    for s in inputs:
        if s.missing is not None or s.numbers or not _flag(s.array, "aligned"):
            return False
    return nonedge is None or nonedge == semiring.zero or (nonedge if isinstance(nonedge, tuple) else (nonedge,)) == zeros


def rewrite(inputs: Inputs, values: Values, semiring: Semiring, reading: Reading, zeros: tuple[Any, ...], *, first: int = 0) -> None:
    """Fill `values` from the arrays, with zero for every non-edge; both begin with row `first` of the caller's matrix."""
    convert = conversions(semiring, [written_as(s.array.dtype, numbers=s.numbers) for s in inputs], [v.dtype for v in values])
    named: tuple[int, ...] = ()
    for part in row_slices(values[0]):
        chunks = [s.array[part] for s in inputs]
        missing = nonedges(chunks, reading.nonedge)
        for given in inputs:
            if given.missing is not None:
                missing |= given.missing[part]

        def where(index: tuple[int, ...], start: int = first + part.start) -> str:
            nonlocal named
            named = (start + index[0], *index[1:])
            return entry_name(named)

        for chunk, out, zero, converted in zip(chunks, values, zeros, convert, strict=True):
            truths = semiring.on_truth_values and out.dtype.kind == "b"
            if not truths and missing.any():  # a non-edge such as NaN may have no value in the new dtype
                chunk = chunk.copy()
                chunk[missing] = 0
            try:
                present = _truth(chunk, missing, reading, where) if truths else converted(chunk, where)
            except SemiringError as error:
                error.index = named[:-2] or None
                raise
            out[part] = present
            out[part][missing] = zero


def _truth(chunk: Array, missing: Array, reading: Reading, where: Place) -> Array:
    if reading.nonedge is not None:
        refuse_nan(namespace(chunk).where(missing, 0, chunk), where)
        return ~missing
    if chunk.dtype.kind == "f" and reading.dtype is None:
        raise DTypeError(
            f"which entries of a {chunk.dtype} matrix are edges? Pass nonedge= (0 for SciPy-style matrices, float('inf') for distances), "
            "or a matrix of bool"
        )
    other = ~equal(chunk, 0) & (chunk != 1) & ~missing
    if other.any():
        index = first(other)
        refuse_text(chunk[index], where(index))
        raise DTypeError(f"{where(index)} is {chunk[index]}, neither 0 nor 1; pass nonedge=0 if every other number is an edge")
    present: Array = namespace(chunk).asarray(~equal(chunk, 0))
    return present


def _may_mean_missing(semiring: Semiring, dtypes: DTypes) -> tuple[bool, bool]:
    """Return whether zeros off the diagonal deserve a warning if no entry is ∞, and whether infinities do if none is the semiring's zero.

    Zero and one may be opposite infinities, as for max-min: callers may confuse no edge and no limit.
    """
    zero, one = semiring.zero, semiring.one
    opposite = isinstance(zero, float) and isinstance(one, float) and math.isinf(zero) and one == -zero
    return semiring.components == 1 and zeros_may_mean_missing(zero, one), opposite and dtypes[0].kind == "f"


def _opposite_infinities_off_diagonal(rows: Array, semiring: Semiring, first: int = 0) -> int:
    """Count the ones off the diagonal of a matrix, or of a block row that begins with row `first`."""
    diagonal = rows[..., first : first + rows.shape[-2]].diagonal(0, -2, -1)
    return sum(int(equal(rows[part], semiring.one).sum()) for part in row_slices(rows)) - int(equal(diagonal, semiring.one).sum())


def _warn_of_infinities(infinities: int, semiring: Semiring) -> None:
    """Warn of infinities equal to the semiring's one, if the count is not 0."""
    if infinities:
        one, zero = ("∞", "−∞") if semiring.one > 0 else ("−∞", "∞")
        names = {"∞": "math.inf", "−∞": "-math.inf"}
        warnings.warn(
            f"of the entries off the diagonal {infinities:,} are {one} and none is {zero}, which is no edge over {semiring.name}: "
            f"each {one} counts as an edge without a limit. If {one} means 'no edge', pass nonedge={names[one]}; if these are edges, "
            f"pass nonedge={names[zero]}",
            NonEdgeWarning,
            stacklevel=callers_level(),
        )


def _zeros_on_diagonal(matrix: Array) -> int:
    diagonal = matrix.diagonal(0, -2, -1)
    if on_gpu(matrix):  # compiles no kernel of CuPy
        return value_statistics((diagonal[..., None, :],))[0].zeros
    return int((diagonal == 0).sum())


def zeros_may_mean_missing(infinity: Any, one: Any) -> bool:
    """Return True if zeros off the diagonal of a matrix without ∞ are probably missing edges, and would become edges of weight 0.

    False for max-min: a zero is the worst of all non-negative entries there, and does no harm.
    """
    return isinstance(infinity, float) and (infinity == math.inf or (infinity == -math.inf and math.isfinite(one)))


def _has_infinity(statistics: ValueStatistics, semiring: Semiring, *, opposite: bool = False) -> bool:
    """Return True if an entry is the infinity of the semiring's zero, or the `opposite` one."""
    return statistics.positive_infinity if (semiring.zero > 0) != opposite else statistics.negative_infinity


def warn_of_zeros(zeros: int, infinity: float) -> None:
    """Warn of zeros, if the count is not 0."""
    if zeros:
        sign = "" if infinity > 0 else "-"
        warnings.warn(
            f"of the entries off the diagonal {zeros:,} are 0 and none is {'−' if sign else ''}∞: each 0 counts as an edge of weight 0. "
            f"If 0 means 'no edge', pass nonedge=0; if these are edges, pass nonedge={sign}math.inf",
            NonEdgeWarning,
            stacklevel=callers_level(),
        )


class RunningStatistics:
    """The value statistics of a matrix, gathered from block rows on any thread; `warn` counts zeros that are probably missing edges."""

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], *, warn: bool) -> None:
        self._semiring, self._infinities = semiring, absorbing(semiring, dtypes)
        self._count_zeros, self._count_infinities = _may_mean_missing(semiring, dtypes) if warn else (False, False)
        self._opposite = 0
        self._lock = threading.Lock()
        self.statistics: tuple[ValueStatistics, ...] = tuple(ValueStatistics() for _ in dtypes)

    def add(self, first: int, values: Values) -> None:
        """Add a block row that begins with row `first` of the matrix. Raises DomainError for an entry that is no element."""
        found = value_statistics(values, self._infinities, off_diagonal_from=first if self._count_zeros else None)
        _require_elements(self._semiring, values, found, first=first)
        counts = self._count_infinities and _has_infinity(found[0], self._semiring, opposite=True)
        opposite = _opposite_infinities_off_diagonal(values[0], self._semiring, first) if counts else 0
        with self._lock:
            self._opposite += opposite
            self.statistics = tuple(old | new for old, new in zip(self.statistics, found, strict=True))
            self._count_zeros = self._count_zeros and not _has_infinity(self.statistics[0], self._semiring)

    @property
    def state(self) -> tuple[tuple[ValueStatistics, ...], int, bool]:
        """The state that another process merges."""
        return self.statistics, self._opposite, self._count_zeros

    def merge(self, states: Iterable[tuple[tuple[ValueStatistics, ...], int, bool]]) -> None:
        """Combine the states of all processes."""
        for statistics, opposite, counts in states:
            self.statistics = tuple(old | new for old, new in zip(self.statistics, statistics, strict=True))
            self._opposite += opposite
            self._count_zeros &= counts

    def warn(self) -> None:
        """Warn of zeros if no entry is ∞, and of infinities of the wrong sign."""
        if self._count_zeros:
            warn_of_zeros(self.statistics[0].zeros, self._semiring.zero)
        if self._opposite and not _has_infinity(self.statistics[0], self._semiring):
            _warn_of_infinities(self._opposite, self._semiring)


def entry_name(index: tuple[int, ...], what: str = "graph") -> str:
    """Name an entry of the caller's matrix in a message."""
    return f"{what}[{', '.join(map(str, index))}]"


def nonedges(parts: Sequence[Array], nonedge: Any) -> Array:
    """Return a mask of the elements equal to `nonedge`: a scalar, or a tuple of one a component; no entry equals None."""
    if nonedge is None:
        nowhere: Array = namespace(parts[0]).zeros(parts[0].shape, dtype=bool)
        return nowhere
    scalars = nonedge if isinstance(nonedge, tuple) else (nonedge,)
    return functools.reduce(operator.and_, [matches(p, s) for p, s in zip(parts, scalars, strict=True)])


def matches(entries: Array, nonedge: Any) -> Array:
    """Return a mask of the entries equal to `nonedge` (NaN equals NaN here).

    An integer equals a float only exactly: 2⁵³ + 1 is not 2.0**53, unlike in NumPy, which rounds. Raises GraphError if the entries are
    numbers and `nonedge` is not.
    """
    if entries.dtype.kind != "O" and (isinstance(nonedge, str | bytes) or not hasattr(nonedge, "__float__")):
        raise GraphError(f"nonedge is {nonedge!r}, which no entry of a {entries.dtype} matrix can be; pass a number such as 0, nan or inf")
    if nonedge != nonedge:
        return nan(entries)
    xp = namespace(entries)
    nowhere: Array = xp.zeros(entries.shape, dtype=bool)
    if entries.dtype.kind in "iu" and isinstance(nonedge, float | np.floating):
        if not float(nonedge).is_integer():
            return nowhere
        nonedge = int(nonedge)
    try:
        found: Array = xp.asarray(equal(entries, nonedge), dtype=bool)
    except OverflowError:  # from CuPy, for a number beyond an integer dtype
        return nowhere
    return found
