"""Helpers for tests of code that uses semirings: matrices of exact numbers, closures by brute force, and checks of paths.

Test libraries are imported on first use.

>>> import numpy as np, semiring as sr
>>> from semiring import testing
>>> graph = testing.random_matrix(sr.MIN_PLUS, 6, rng=np.random.default_rng(0))
>>> np.array_equal(sr.apsp(graph), testing.brute_force(sr.MIN_PLUS, graph).astype(float))
True
>>> testing.assert_paths_valid(sr.apsp(graph, paths=True), graph)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.algebra.model import model_of
from semiring.algorithms.bellman_ford import exact_weight
from semiring.arrays.conversion import Array
from semiring.arrays.devices import host
from semiring.common.errors import raised_here
from semiring.kernels.operations import Operations
from semiring.results.paths import Paths

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["assert_paths_valid", "brute_force", "elements", "matrices", "path_weight", "random_matrix"]


@raised_here
def elements(semiring: Semiring | str, dtype: Any = None, *, harmless: bool = True) -> list[Any]:
    """List sample elements of a semiring, zero and one first, with sums and products that are exact in the dtype.

    Examples
    --------
    >>> import semiring as sr
    >>> elements(sr.MIN_PLUS, "int32")[:5]
    [2147483647, 0, 1, 2, 3]

    Parameters
    ----------
    semiring : Semiring or str
    dtype : dtype or sequence of dtype, optional
        One dtype for each component; by default the usual dtypes of the semiring.
    harmless : bool
        List only elements a with 1 ⊕ a = 1, for which every closure converges.
    """
    semiring = as_semiring(semiring)
    kinds = semiring.dtypes(semiring.usual_dtypes if dtype is None else dtype)
    zero, one = semiring.identities(kinds)
    operations = Operations(semiring, kinds)
    found = [zero, one]
    sample = model_of(semiring, kinds, semiring.running(kinds)).elements
    for column in zip(*(values.tolist() for values in sample), strict=True):
        element = tuple(_in_dtype(v, d, z) for v, d, z in zip(column, kinds, zero, strict=True))
        arrays = tuple(np.full((), v, dtype=d) for v, d in zip(element, kinds, strict=True))
        if element not in found and (not harmless or operations.harmless(arrays)):
            found.append(element)
    return found if semiring.components > 1 else [e[0] for e in found]


def _in_dtype(value: Any, dtype: np.dtype[Any], zero: Any) -> Any:
    """Convert a value to an entry of this dtype; an infinite value becomes the zero of an integer dtype."""
    if dtype.kind in "iu":
        return int(value) if not isinstance(value, float) or math.isfinite(value) else zero
    return value


@raised_here
def random_matrix(
    semiring: Semiring | str,
    shape: int | Sequence[int],
    dtype: Any = None,
    *,
    density: float = 0.5,
    harmless: bool = True,
    rng: np.random.Generator | None = None,
) -> Any:
    """Return a random square matrix over a semiring, of `elements`, which the dtype holds exactly.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> rng = np.random.default_rng(1)
    >>> random_matrix(sr.MIN_PLUS, 3, "int16", density=0.4, rng=rng).shape
    (3, 3)

    Parameters
    ----------
    semiring, dtype, harmless
        See `elements`.
    shape : int or sequence of int
        n, or (…, n, n).
    density : float
        The share of entries that are not the semiring's zero.
    rng : numpy.random.Generator, optional

    Returns
    -------
    array of shape (…, n, n), or tuple of such arrays for structured elements
    """
    rng = np.random.default_rng() if rng is None else rng
    semiring = as_semiring(semiring)
    kinds = semiring.dtypes(semiring.usual_dtypes if dtype is None else dtype)
    full = (shape, shape) if isinstance(shape, int | np.integer) else tuple(shape)
    pool = elements(semiring, kinds, harmless=harmless)
    pick = np.where(rng.random(full) < density, rng.integers(1, len(pool), full), 0)
    return _matrix(pool, kinds, pick)


def _matrix(pool: list[Any], kinds: Sequence[Any], pick: Array) -> Any:
    """Return the matrix of the elements with the numbers `pick`, as one array or a tuple of arrays."""
    entries = [[e[c] for e in pool] for c in range(len(kinds))] if len(kinds) > 1 else [pool]
    columns = [np.fromiter(part, kind, len(pool)) for part, kind in zip(entries, kinds, strict=True)]  # np.array would take objects apart
    return tuple([column[pick] for column in columns]) if len(kinds) > 1 else columns[0][pick]


@raised_here
def matrices(semiring: Semiring | str, dtype: Any = None, *, max_n: int = 8, harmless: bool = True) -> SearchStrategy[Any]:
    """Return a Hypothesis strategy for square matrices of `elements`.

    Examples
    --------
    >>> import semiring as sr
    >>> from hypothesis import given
    >>> @given(matrices(sr.MAX_MIN, max_n=4))
    ... def closing_twice_is_closing_once(a):
    ...     once = sr.closure(a, sr.MAX_MIN)
    ...     assert (sr.closure(once, sr.MAX_MIN) == once).all()

    Parameters
    ----------
    semiring, dtype, harmless
        See `elements`.
    max_n : int
        The greatest number of vertices; the least is 0.

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        A strategy for arrays of shape (n, n), or tuples of such arrays for structured elements.
    """
    from hypothesis import strategies as st

    semiring = as_semiring(semiring)
    kinds = semiring.dtypes(semiring.usual_dtypes if dtype is None else dtype)
    pool = elements(semiring, kinds, harmless=harmless)

    def build(n: int) -> SearchStrategy[Any]:
        # A zero half of the time makes sparse graphs likely.
        entry = st.one_of(st.just(pool[0]), st.sampled_from(pool))
        pick = np.arange(n * n).reshape(n, n)
        return st.lists(entry, min_size=n * n, max_size=n * n).map(lambda entries: _matrix(entries, kinds, pick))

    return st.integers(0, max_n).flatmap(build)


@raised_here
def brute_force(semiring: Semiring | str, a: Any, *, reflexive: bool = True) -> Any:
    """Return the exact closure of a small matrix by adding up every simple path and simple cycle.

    The result is the closure only if no cycle adds anything (see ``harmless`` of `elements`).

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> widths = np.array([[0, 5, 2], [0, 0, 3], [0, 0, 0]])
    >>> brute_force(sr.MAX_MIN, widths, reflexive=False)[0, 2]
    3

    Parameters
    ----------
    semiring : Semiring or str
    a : array of shape (n, n), or tuple of such arrays
    reflexive : bool
        See `semiring.closure`.

    Returns
    -------
    object array of shape (n, n), or tuple of such arrays
        Floats are exact fractions. The value that stands for ∞ in an integer dtype stands for ∞ here too.

    Notes
    -----
    A complete graph has more than (n − 1)! paths.
    """
    semiring = as_semiring(semiring)
    arrays = a if isinstance(a, tuple) else (a,)
    n = len(arrays[0])
    nothing, unit = semiring.identities([v.dtype for v in arrays])
    zero, one = (nothing, unit) if semiring.components > 1 else (nothing[0], unit[0])
    pairs = list(itertools.product(range(n), repeat=2))
    edges = {pair for pair in pairs if any(v[pair] != z for v, z in zip(arrays, nothing, strict=True))}
    total = dict.fromkeys(pairs, zero)
    for i in range(n):
        if reflexive:
            total[i, i] = semiring.add(one, zero)
        stack: list[list[int]] = [[i]]
        while stack:
            path = stack.pop()
            for j in range(n):
                if (path[-1], j) not in edges or j in path[1:] or (j == i and reflexive):
                    continue
                longer = [*path, j]
                total[i, j] = semiring.add(total[i, j], exact_weight(semiring, arrays, longer))
                if j != i:
                    stack.append(longer)
    return _matrix(list(total.values()), [object] * len(arrays), np.arange(n * n).reshape(n, n))


@raised_here
def path_weight(semiring: Semiring | str, a: Any, path: Sequence[int]) -> Any:
    """Return the product of the edges of a path, exactly.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> path_weight(sr.MIN_PLUS, np.array([[0.0, 0.5], [0.25, 0.0]]), [0, 1, 0])
    Fraction(3, 4)

    Parameters
    ----------
    semiring : Semiring or str
    a : array of shape (n, n), or tuple of such arrays
    path : sequence of int
        Vertices, at least one.

    Returns
    -------
    scalar, or tuple of such
        Floats are exact fractions.
    """
    return exact_weight(as_semiring(semiring), a if isinstance(a, tuple) else (a,), path)


@raised_here
def assert_paths_valid(
    paths: Paths, a: Any, pairs: Iterable[tuple[int, int]] | None = None, *, slack: float = 4.0, absolute: float = 0.0, trees: bool = True
) -> None:
    """Raise an AssertionError unless every path is a simple path of the matrix and has the reported weight.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> graph = np.array([[0.0, 2.0], [np.inf, 0.0]])
    >>> assert_paths_valid(sr.apsp(graph, paths=True), graph)

    Parameters
    ----------
    paths : Paths
        The paths of one matrix.
    a : array of shape (n, n), or tuple of arrays
        The matrix.
    pairs : iterable of (int, int), optional
        Rows and columns to check; all by default.
    slack : float
        Tolerance for float weights, in units of hops · ε · Σ|w|.
    absolute : float
        Absolute tolerance to add.
    trees : bool
        Also check the predecessor and next-hop matrices.

    Raises
    ------
    AssertionError
        If a path is wrong; the message names the path and the fault.
    """
    arrays = a if isinstance(a, tuple) else (a,)
    values = tuple(map(host, paths.values if isinstance(paths.values, tuple) else (paths.values,)))
    n = len(arrays[0])
    zero = paths.semiring.identities([v.dtype for v in arrays])[0]
    chosen = list(itertools.product(range(n), repeat=2)) if pairs is None else [(int(i), int(j)) for i, j in pairs]
    found = paths.paths([(paths.nodes[i], paths.nodes[j]) for i, j in chosen])
    number = {node: i for i, node in enumerate(paths.nodes)}
    grown = {"predecessors": host(paths.predecessors()), "next_hops": host(paths.next_hops())} if trees else {}

    def check(path: list[int], i: int, j: int) -> None:
        """Refuse a path unless it leads from i to j along edges, repeats no vertex and has the reported weight."""
        assert path[:1] == [i], f"{path} does not begin at {i}"
        assert path[-1] == j, f"{path} does not end at {j}"
        inner = path[:-1] if i == j and len(path) > 1 else path
        assert len(set(inner)) == len(inner), f"{path} visits a vertex twice"
        for u, v in itertools.pairwise(path):
            assert any(a[u, v] != z for a, z in zip(arrays, zero, strict=True)), f"{path} uses {u} → {v}, which is no edge"
        weight = exact_weight(paths.semiring, arrays, path)
        for w, array, value in zip(weight if isinstance(weight, tuple) else (weight,), arrays, values, strict=True):
            element = value[i, j]
            if array.dtype.kind != "f" or not math.isfinite(element):
                assert w == element, f"{path} has weight {w}, not {element}"
            else:
                size = sum(abs(float(array[u, v])) for u, v in itertools.pairwise(path))
                bound = slack * (len(path) - 1) * float(np.finfo(array.dtype).eps) * size + absolute
                assert abs(float(w) - float(element)) <= bound, f"{path} has weight {float(w)}, not {element} (± {bound})"

    for (i, j), labels in zip(chosen, found, strict=True):
        path = [number[v] for v in labels]
        if all(v[i, j] == z for v, z in zip(values, zero, strict=True)):
            assert path == [], f"there is a path {path} from {i} to {j}, but the closure has none (zero)"
            continue
        check(path, i, j)
        if i == j and paths.reflexive:
            assert path == [i], f"the path from {i} to itself is {path}"
        for kind, matrix in grown.items():
            if i != j:
                check(_walk(matrix, i, j, backwards=kind == "predecessors"), i, j)
            else:
                assert matrix[i, j] == -9999, f"{kind}[{i}, {j}] is {matrix[i, j]}"


def _walk(matrix: Array, i: int, j: int, *, backwards: bool) -> list[int]:
    """Return the path from i to j in a matrix of predecessors (backwards) or of next hops."""
    path = [j if backwards else i]
    while path[-1] != (i if backwards else j):
        path.append(int(matrix[i, path[-1]] if backwards else matrix[path[-1], j]))
        assert 0 <= path[-1] < len(matrix), f"no tree: {path} between {i} and {j}"
        assert len(path) <= len(matrix), f"no tree: {path} between {i} and {j}"
    return path[::-1] if backwards else path
