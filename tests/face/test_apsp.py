"""Distances and paths of whole graphs, against SciPy and NetworkX; what is accepted, what is refused, what is left alone."""

from __future__ import annotations

import math
import subprocess
import sys
from decimal import Decimal
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import NegativeCycleError as SciPyNegativeCycle
from scipy.sparse.csgraph import floyd_warshall, johnson

import semiring as sr
from semiring import testing

INF = np.inf
Array = np.ndarray[Any, Any]


def sparse_matrix(n: int, density: float = 0.2, seed: int = 0, dtype: Any = np.float64) -> Array:
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 100, (n, n)).astype(dtype)
    a[rng.random((n, n)) >= density] = INF
    return a


@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 127, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_are_scipys(n: int, dtype: Any) -> None:
    a = sparse_matrix(n, 8 / max(n, 1), dtype=dtype)
    expected = floyd_warshall(sparse.csr_array(np.where(np.isinf(a), 0, a))) if n else a
    found = sr.apsp(a)
    assert found.dtype == dtype
    assert np.array_equal(found, expected)


@given(data=st.data())
def test_negative_edges_are_johnsons(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 7))
    weights = st.one_of(st.none(), st.integers(-3, 9).filter(bool))
    entries = data.draw(st.lists(weights, min_size=n * n, max_size=n * n))
    a = np.array([INF if w is None else w for w in entries], dtype=float).reshape(n, n)
    try:
        expected = johnson(sparse.csr_array(np.where(np.isinf(a), 0, a)))
    except SciPyNegativeCycle:
        with pytest.raises(sr.NegativeCycleError):
            sr.apsp(a)
    else:
        if (np.diagonal(a) < 0).any():  # SciPy does not count a negative loop
            with pytest.raises(sr.NegativeCycleError):
                sr.apsp(a)
        else:
            assert np.array_equal(sr.apsp(a), expected)


def test_networkx_graphs_keep_their_labels() -> None:
    graph = nx.les_miserables_graph()
    paths = sr.apsp(graph, paths=True)
    assert paths.nodes == tuple(graph.nodes)
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
    for u, row in zip(paths.nodes, paths.distances, strict=True):
        for v, d in zip(paths.nodes, row, strict=True):
            assert d == lengths[u].get(v, INF)
    path = paths.path("Napoleon", "Javert")
    assert nx.is_path(graph, path)
    assert nx.path_weight(graph, path, "weight") == paths.distance("Napoleon", "Javert")


def views(a: Array) -> dict[str, Array]:
    """The same matrix laid out in every way that NumPy has."""
    n = len(a)
    wide = np.full((2 * n, 3 * n), 7.0, dtype=a.dtype)
    wide[::2, ::3] = a
    flipped = a[::-1, ::-1].copy()[::-1, ::-1]
    frozen = a.copy()
    frozen.flags.writeable = False
    swapped = a.astype(a.dtype.newbyteorder())
    shifted = np.empty(a.nbytes + 1, dtype=np.uint8)[1:].view(a.dtype).reshape(a.shape)
    shifted[...] = a
    return {
        "C": a.copy(), "Fortran": np.asfortranarray(a), "slice": wide[::2, ::3], "negative strides": flipped, "read-only": frozen,
        "byte order": swapped, "unaligned": shifted,
    }  # fmt: skip


@pytest.mark.parametrize("layout", list(views(np.zeros((2, 2)))))
@pytest.mark.parametrize("paths", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_every_layout_is_accepted_and_left_alone(layout: str, paths: bool, overwrite: bool, dtype: Any) -> None:
    base = sparse_matrix(70)
    a = np.where(np.isinf(base), np.iinfo(np.int32).max if dtype is np.int32 else INF, base).astype(dtype)
    expected = sr.apsp(a)
    given_array = views(a)[layout]
    found = sr.apsp(given_array, paths=paths, overwrite=overwrite)
    assert np.array_equal(found.distances if paths else found, expected)
    if not overwrite or layout == "read-only":
        assert np.array_equal(given_array, a)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_overwrite_puts_the_result_into_a_suitable_array(dtype: Any) -> None:
    a = sparse_matrix(150, 0.1) if dtype is np.float32 else np.random.default_rng(0).integers(1, 99, (150, 150))
    a = a.astype(dtype)
    expected = sr.apsp(a)
    found = sr.apsp(a, overwrite=True, device="cpu")  # from a GPU results come in memory of their own
    assert np.shares_memory(found, a)
    assert np.array_equal(a, expected)
    inside = np.full((200, 200), 5, dtype=dtype)
    view = inside[20:170, 30:180]
    view[...] = expected
    assert np.shares_memory(sr.apsp(view, overwrite=True, device="cpu"), inside)
    assert (inside[:20] == 5).all()
    assert (inside[:, 180:] == 5).all()


@pytest.mark.parametrize("batch", [(3,), (2, 2), (0,), (1, 0, 2)])
@pytest.mark.parametrize("n", [0, 1, 5, 70])
def test_batches(batch: tuple[int, ...], n: int) -> None:
    a = testing.random_matrix(sr.MIN_PLUS, (*batch, n, n), float, density=0.1, rng=np.random.default_rng(1))
    found = sr.apsp(a)
    paths = sr.apsp(a, paths=True)
    assert found.shape == a.shape
    for index in np.ndindex(batch):
        assert np.array_equal(found[index], sr.apsp(a[index]))
        assert np.array_equal(paths[index].distances, found[index])
        if n:
            testing.assert_paths_valid(paths[index], a[index], pairs=[(0, n - 1), (n - 1, 0)], trees=False)


def test_batches_of_broadcast_matrices() -> None:
    a = np.broadcast_to(sparse_matrix(20), (4, 20, 20))
    assert np.array_equal(sr.apsp(a)[3], sr.apsp(a[0]))


@pytest.mark.parametrize(
    ("graph", "error"),
    [
        (np.zeros((2, 3)), sr.ShapeError),
        (np.zeros(4), sr.ShapeError),
        (np.zeros((2, 2), dtype=complex), sr.DTypeError),
        (np.array([["a", "b"], ["c", "d"]]), sr.SemiringError),
        (np.array([[0.0, np.nan], [1.0, 0.0]]), sr.DomainError),
        (np.array([[0.0, -INF], [1.0, 0.0]]), sr.DomainError),
        (np.zeros((2, 2), dtype=bool), sr.DTypeError),
        ("graph", sr.SemiringError),
        (None, sr.SemiringError),
        (np.array([[0.0, 1.0], [-2.0, 0.0]]), sr.NegativeCycleError),
        (np.array([[0, 2**30], [2**30, 0]], dtype=np.int32), sr.OverflowRiskError),
    ],
)
def test_bad_input_is_refused_and_unchanged(graph: Any, error: type[Exception]) -> None:
    before = graph.copy() if isinstance(graph, np.ndarray) else graph
    for paths in (False, True):
        with pytest.raises(error):
            sr.apsp(graph, paths=paths)
    if isinstance(graph, np.ndarray):
        assert np.array_equal(graph, before, equal_nan=graph.dtype.kind == "f")


@given(
    graph=st.one_of(
        st.none(),
        st.integers(),
        st.text(),
        st.lists(st.integers()),
        st.dictionaries(st.text(), st.integers()),
        st.lists(st.lists(st.one_of(st.floats(), st.none(), st.text(max_size=2), st.booleans()), max_size=3), max_size=3),
    )
)
@pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")
def test_whatever_is_no_graph_gets_an_error_of_the_family(graph: Any) -> None:
    try:
        found = sr.apsp(graph)
    except sr.SemiringError:
        return
    assert isinstance(found, np.ndarray)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "two"])
def test_bad_thread_counts(threads: Any) -> None:
    with pytest.raises(sr.SemiringError, match="threads"):
        sr.apsp(np.zeros((1, 1)), threads=threads)


def test_unknown_device() -> None:
    with pytest.raises(sr.SemiringError, match="device"):
        sr.apsp(np.zeros((1, 1)), device="abacus")


def test_errors_say_what_was_computed() -> None:
    with pytest.raises(sr.SemiringError) as caught:
        sr.apsp(np.full((2, 3, 3), -1.0))
    text = " ".join([str(caught.value), *caught.value.__notes__])
    for part in ("2 × 3 × 3", "min-plus", "float64", "batch index [0]"):
        assert part in text


@pytest.mark.parametrize(
    ("graph", "described"),
    [
        (np.zeros((2, 3)), "in the closure of 2 × 3 elements (float64) over min-plus"),
        ([[0, 1], [2]], "in the closure of a value of type list over min-plus"),
        (sr.edges([(0, 1, math.nan)]), "in the closure of a value of type EdgeList over min-plus"),
    ],
)
def test_errors_of_reading_say_what_was_read(graph: Any, described: str) -> None:
    with pytest.raises(sr.SemiringError) as caught:
        sr.apsp(graph)
    assert caught.value.__notes__ == [described]


@pytest.mark.parametrize("nonedge", ["x", b"0", 1j])
@pytest.mark.parametrize("graph", [np.zeros((2, 2)), np.zeros((2, 2), int), sr.edges([(0, 1, 2.0)])], ids=["float", "int", "edges"])
def test_a_nonedge_that_no_entry_can_be(graph: Any, nonedge: Any) -> None:
    with pytest.raises(sr.GraphError, match=r"nonedge is .*pass a number"):
        sr.apsp(graph, nonedge=nonedge)


def test_a_nonedge_of_objects_may_be_any_object() -> None:
    assert sr.apsp(np.array([[0, 1], ["-", 0]], dtype=object), nonedge="-").tolist() == [[0, 1], [INF, 0]]


def test_importing_is_fast_and_loads_no_extra() -> None:
    program = (
        "import sys; import semiring; import semiring as sr; dir(sr); "
        "print([m for m in ('llvmlite', 'scipy', 'networkx', 'sympy', 'hypothesis', 'pandas', 'cupy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_every_public_name_exists() -> None:
    for name in sr.__all__:
        assert getattr(sr, name) is not None
        assert name in dir(sr)
    with pytest.raises(AttributeError, match="shortest"):
        sr.shortest  # noqa: B018 (the access is what is tested)


@pytest.mark.parametrize(
    ("entries", "error", "message"),
    [
        ([[0, 10**400], [math.inf, 0]], sr.OverflowRiskError, "about 1e400"),
        ([[0, Decimal("0.1")], [0.5, 0]], sr.DTypeError, "entries of one kind"),
    ],
)
def test_objects_that_cannot_be_combined(entries: list[list[Any]], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sr.apsp(np.array(entries, dtype=object))
