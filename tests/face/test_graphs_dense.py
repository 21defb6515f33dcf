"""Dense matrices as graphs: what is borrowed, what is rewritten, what is refused."""

from __future__ import annotations

import math
import subprocess
import sys
import types
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from semiring.algebra.catalogue import BOOLEAN, DISTANCE_HOPS, GF2, MAX_MIN, MAX_PLUS, MIN_MAX, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.common.errors import DomainError, DTypeError, GraphError, SemiringError, ShapeError
from semiring.graphs import Graph, NonEdgeWarning, read_graph

INF = math.inf
MAX64 = 2**63 - 1
ROADS = np.array([[0, 3, INF], [INF, 0, 4], [2, INF, 0]])
STAND_INS = [(MIN_PLUS, np.int16, 32767), (MIN_PLUS, np.uint8, 255), (MAX_PLUS, np.int16, -32768), (MAX_MIN, np.uint8, 0)]
"""A semiring, a dtype, and the integer that stands for ∞ or −∞ there."""


def matrix(graph: Any, semiring: Semiring = MIN_PLUS, **options: Any) -> np.ndarray[Any, Any]:
    (values,) = read_graph(graph, semiring, **options).values
    return values


class TestBorrowing:
    @pytest.mark.parametrize(
        "view",
        [
            ROADS,
            np.asfortranarray(ROADS),
            ROADS.T,
            ROADS[::-1, ::-1],
            np.tile(ROADS, (2, 2))[::2, ::2],
            np.broadcast_to(np.float64(1), (3, 3)),
            np.zeros((0, 0)),
            np.array([[5]]),
            np.stack([ROADS] * 4).reshape(2, 2, 3, 3),
        ],
    )
    def test_an_array_is_borrowed_as_it_is(self, view: np.ndarray[Any, Any]) -> None:
        graph = read_graph(view, MIN_PLUS)
        assert not graph.owned
        assert np.shares_memory(graph.values[0], view) or view.size == 0
        np.testing.assert_array_equal(graph.values[0], view)
        assert graph.n == view.shape[-1]
        assert graph.batch == view.shape[:-2]

    def test_working_arrays_are_copies_of_borrowed_ones(self) -> None:
        (work,) = read_graph(ROADS.T, MIN_PLUS).working()
        assert work.flags.c_contiguous
        assert not np.shares_memory(work, ROADS)

    def test_read_only_input_is_fine(self) -> None:
        roads = ROADS.copy()
        roads.flags.writeable = False
        assert not read_graph(roads, MIN_PLUS, overwrite=True).owned
        assert read_graph(roads, MIN_PLUS).working()[0].flags.writeable

    def test_overwrite_lends_the_callers_memory(self) -> None:
        roads = ROADS.copy()
        graph = read_graph(roads, MIN_PLUS, overwrite=True)
        assert graph.owned
        assert graph.working()[0] is roads

    def test_overwrite_maps_non_edges_in_place(self) -> None:
        roads = np.array([[0, 3], [0, 0]])
        (values,) = read_graph(roads, MIN_PLUS, overwrite=True, nonedge=0).values
        assert values is roads
        assert roads.tolist() == [[MAX64, 3], [MAX64, MAX64]]

    @pytest.mark.parametrize(
        "shared",
        [np.broadcast_to(np.float64(1), (3, 3)), np.lib.stride_tricks.as_strided(np.arange(1.0, 9.0), (3, 3), (8, 16))],
    )
    def test_overlapping_entries_are_never_overwritten(self, shared: np.ndarray[Any, Any]) -> None:
        assert not read_graph(shared, MIN_PLUS, overwrite=True).owned

    def test_two_components_in_one_memory_are_never_overwritten(self) -> None:
        both = ROADS.copy()
        assert not read_graph((both, both), DISTANCE_HOPS, overwrite=True).owned

    def test_unaligned_and_foreign_byte_order_are_copied(self) -> None:
        raw = np.zeros(9 * 8 + 1, dtype=np.uint8)
        unaligned = raw[1:].view(np.float64).reshape(3, 3)
        unaligned[...] = ROADS
        for source in (unaligned, ROADS.astype(">f8")):
            graph = read_graph(source, MIN_PLUS, overwrite=True)
            assert graph.owned
            assert graph.values[0].flags.aligned
            assert graph.values[0].dtype == np.dtype("f8")
            np.testing.assert_array_equal(graph.values[0], ROADS)

    def test_nothing_the_caller_passed_changes(self) -> None:
        before = ROADS.copy()
        every: tuple[dict[str, Any], ...] = ({}, {"nonedge": 0}, {"dtype": np.float32}, {"dtype": np.int16}, {"nonedge": INF})
        for options in every:
            for work in read_graph(before, MIN_PLUS, **options).working():
                work[...] = 7
        np.testing.assert_array_equal(before, ROADS)


class TestNonEdges:
    def test_nonedge_becomes_the_semirings_zero(self) -> None:
        assert matrix(np.array([[1.0, 0], [2, 0]]), nonedge=0).tolist() == [[1, INF], [2, INF]]
        assert matrix(np.array([[1, 0], [2, 0]], dtype=np.int16), nonedge=0).tolist() == [[1, 32767], [2, 32767]]
        assert matrix(np.array([[1.0, -1], [2, -1]]), MAX_PLUS, nonedge=-1).tolist() == [[1, -INF], [2, -INF]]
        assert matrix(np.array([[1.0, 9], [2, 9]]), PLUS_TIMES, nonedge=9).tolist() == [[1, 0], [2, 0]]

    def test_nan_as_nonedge(self) -> None:
        weights = np.array([[0, math.nan], [3, 0]])
        assert matrix(weights, nonedge=math.nan).tolist() == [[0, INF], [3, 0]]
        assert matrix(weights, nonedge=math.nan, dtype=np.int32).tolist() == [[0, 2**31 - 1], [3, 0]]
        assert matrix(np.array([[0, 1], [3, 0]]), nonedge=math.nan).tolist() == [[0, 1], [3, 0]]

    def test_the_zero_itself_as_nonedge_copies_nothing(self) -> None:
        assert not read_graph(ROADS, MIN_PLUS, nonedge=INF).owned
        assert not read_graph(np.array([[0, 1], [1, 0]]), MIN_PLUS, nonedge=INF).owned
        assert not read_graph(np.array([[0, 1], [1, 0]], dtype=np.int16), MIN_PLUS, nonedge=32767).owned

    def test_the_zero_of_the_new_dtype_as_nonedge(self) -> None:
        assert matrix(np.array([[0, 2.0**31 - 1], [1, 0]]), nonedge=2**31 - 1, dtype=np.int32).tolist() == [[0, 2**31 - 1], [1, 0]]

    def test_masked_entries_are_non_edges(self) -> None:
        masked = np.ma.masked_equal(np.array([[0, 7], [1, 0]]), 7)
        assert matrix(masked).tolist() == [[0, MAX64], [1, 0]]
        assert matrix(np.ma.masked_invalid([[0, math.nan], [1.5, 0]])).tolist() == [[0, INF], [1.5, 0]]
        assert not read_graph(np.ma.array(ROADS), MIN_PLUS).owned
        assert masked.data.tolist() == [[0, 7], [1, 0]]

    def test_structured_elements(self) -> None:
        length, hops = np.array([[0.0, 5], [2, 0]]), np.array([[0.0, 0], [1, 0]])
        graph = read_graph((length, hops), DISTANCE_HOPS, nonedge=(5, 0))
        assert graph.owned
        assert [v.tolist() for v in graph.values] == [[[0, INF], [2, 0]], [[0, INF], [1, 0]]]
        assert not read_graph((length, hops), DISTANCE_HOPS).owned

    @pytest.mark.parametrize("nonedge", [[0, 1], (0,), (0, 0, 0)])
    def test_structured_nonedge_is_an_element(self, nonedge: Any) -> None:
        with pytest.raises(GraphError, match="a tuple of 2 numbers"):
            read_graph((ROADS, ROADS), DISTANCE_HOPS, nonedge=nonedge)

    @pytest.mark.parametrize("nonedge", [(0,), [0, 1], np.zeros(2)])
    def test_nonedge_is_one_number(self, nonedge: Any) -> None:
        with pytest.raises(GraphError, match="nonedge is one number"):
            read_graph(ROADS, MIN_PLUS, nonedge=nonedge)

    def test_across_stripes(self) -> None:
        n = 700
        weights = np.ones((n, n))
        weights[650, 3] = 0
        assert np.argwhere(matrix(weights, nonedge=0) == INF).tolist() == [[650, 3]]
        weights[640, 5] = math.nan
        with pytest.raises(DomainError, match=r"graph\[640, 5\]"):
            matrix(weights, nonedge=0)
        with pytest.raises(DomainError, match=r"graph\[640, 5\]"):
            matrix(weights, nonedge=0, dtype=np.int32)


class TestWarning:
    @pytest.mark.parametrize(
        ("semiring", "graph"),
        [
            (MIN_PLUS, [[0, 0.0], [3, 0]]),
            (MIN_PLUS, [[0, 0], [3, 0]]),
            (MIN_PLUS, [[[0, 1], [1, 0]], [[0, 0], [3, 0]]]),
            (MIN_MAX, [[0, 0.0], [3, 0]]),
            (MAX_PLUS, [[0, 0.0], [-3, 0]]),
        ],
    )
    def test_zeros_that_look_like_missing_edges(self, semiring: Semiring, graph: Any) -> None:
        with pytest.warns(NonEdgeWarning, match="off the diagonal 1 are 0.*nonedge=0") as caught:
            read_graph(np.array(graph), semiring)
        assert caught[0].filename == __file__  # it points at the caller's line

    @pytest.mark.parametrize(
        ("semiring", "graph", "sign"),
        [
            (MAX_MIN, [[INF, INF], [3, INF]], ""),
            (MAX_MIN, [[[0, 1.0], [1, 0]], [[0, INF], [3, 0]]], ""),
            (MIN_MAX, [[0, -INF], [3, 0]], "-"),
        ],
    )
    def test_infinities_of_the_other_sign_that_look_like_missing_edges(self, semiring: Semiring, graph: Any, sign: str) -> None:
        with pytest.warns(
            NonEdgeWarning, match=f"off the diagonal 1 are .?∞ and none is .*'no edge', pass nonedge={sign}math.inf"
        ) as caught:
            read_graph(np.array(graph), semiring)
        assert caught[0].filename == __file__

    @pytest.mark.parametrize(
        ("semiring", "graph", "options"),
        [
            (MIN_PLUS, [[0, 0.0], [3, 0]], {"nonedge": INF}),
            (MIN_PLUS, [[0, 0.0], [3, 0]], {"nonedge": 0}),
            (MIN_PLUS, [[0, 0.0], [INF, 0]], {}),
            (MIN_PLUS, [[0, 0], [MAX64, 0]], {}),
            (MIN_PLUS, [[0, 1.0], [3, 0]], {}),
            (MIN_PLUS, [[0]], {}),
            (MIN_PLUS, np.zeros((0, 0)), {}),
            (MAX_MIN, [[0, 0.0], [3, 0]], {}),
            (MAX_MIN, [[INF, 0.0], [3, INF]], {}),  # what a closure gives
            (MAX_MIN, [[INF, INF], [-INF, INF]], {}),
            (MAX_MIN, [[0, INF], [3, 0]], {"nonedge": INF}),
            (MAX_MIN, [[0, INF], [3, 0]], {"nonedge": -INF}),
            (MIN_MAX, [[0, INF], [3, 0]], {}),
            (PLUS_TIMES, [[0, 0.0], [3, 0]], {}),
            (BOOLEAN, [[0, 0], [1, 0]], {}),
        ],
    )
    def test_silence(self, semiring: Semiring, graph: Any, options: dict[str, Any]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_graph(np.array(graph), semiring, **options)


class TestTruthValues:
    @pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.uint64])
    def test_bool_and_zero_one_integers(self, dtype: Any) -> None:
        source = np.array([[0, 1], [1, 1]], dtype=dtype)
        graph = read_graph(source, BOOLEAN)
        assert graph.dtypes == (np.dtype(bool),)
        assert graph.values[0].tolist() == [[False, True], [True, True]]
        assert graph.owned == (dtype is not bool)
        assert matrix(source, GF2).tolist() == [[False, True], [True, True]]

    def test_other_integers_need_nonedge(self) -> None:
        numbers = np.array([[0, 5], [1, 0]])
        with pytest.raises(DTypeError, match=r"graph\[0, 1\] is 5, neither 0 nor 1; pass nonedge=0"):
            read_graph(numbers, BOOLEAN)
        assert matrix(numbers, BOOLEAN, nonedge=0).tolist() == [[False, True], [True, False]]

    def test_floats_need_nonedge(self) -> None:
        with pytest.raises(DTypeError, match="which entries of a float64 matrix are edges"):
            read_graph(np.eye(2), BOOLEAN)
        assert matrix(ROADS, BOOLEAN, nonedge=INF).tolist() == [[True, True, False], [False, True, True], [True, False, True]]
        assert matrix(np.eye(2), BOOLEAN, nonedge=0).tolist() == [[True, False], [False, True]]
        assert matrix(np.eye(2), BOOLEAN, dtype=bool).tolist() == [[True, False], [False, True]]
        with pytest.raises(DomainError, match="NaN"):
            read_graph(np.array([[math.nan]]), BOOLEAN, nonedge=0)
        assert matrix(np.array([[math.nan]]), BOOLEAN, nonedge=math.nan).tolist() == [[False]]

    def test_masked_and_none(self) -> None:
        assert matrix(np.ma.masked_equal(np.array([[1, 9], [9, 0]]), 9), BOOLEAN).tolist() == [[True, False], [False, False]]
        assert matrix([[1, None], [0, 1]], BOOLEAN).tolist() == [[True, False], [False, True]]

    def test_objects_are_truth_values_where_presence_is_asked_for(self) -> None:
        listed = np.array([[None, 5], [0, Fraction(1, 2)]], dtype=object)
        assert matrix(listed, BOOLEAN, presence=True, nonedge=0).tolist() == [[False, True], [False, True]]
        with pytest.raises(DTypeError, match=r"graph\[0, 1\] is 5, neither 0 nor 1; pass nonedge=0"):
            read_graph(listed, BOOLEAN, presence=True)
        for entries in ([[None, 1], [0, np.True_]], [[False, True], [0, 1]]):
            graph = read_graph(np.array(entries, dtype=object), BOOLEAN, presence=True)
            assert graph.dtypes == (np.dtype(bool),)
            assert graph.values[0].tolist() == [[False, True], [False, True]]
        sympy = pytest.importorskip("sympy")
        for symbolic in (np.array([[False, sympy.Symbol("x")], [False, False]]), sympy.Matrix([[0, 1], [0, 0]])):
            assert read_graph(symbolic, BOOLEAN, presence=True).dtypes == (np.dtype(object),)

    def test_bool_for_distances_says_what_to_do(self) -> None:
        adjacency = np.array([[False, True], [True, False]])
        with pytest.raises(DTypeError, match="nonedge=False"):
            read_graph(adjacency, MIN_PLUS)
        assert matrix(adjacency, nonedge=False, dtype=np.float64).tolist() == [[INF, 1], [1, INF]]


class TestDTypes:
    @pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"])
    def test_arrays_keep_their_own(self, dtype: str) -> None:
        assert read_graph(np.ones((2, 2), dtype), MIN_PLUS).dtypes == (np.dtype(dtype),)

    @pytest.mark.parametrize(("narrow", "wide"), [(np.float16, np.float32), (np.int8, np.int16)])
    def test_narrow_ones_widen(self, narrow: Any, wide: Any) -> None:
        infinity = INF if narrow is np.float16 else 127
        graph = read_graph(np.array([[0, infinity], [3, 0]], dtype=narrow), MIN_PLUS)
        assert graph.dtypes == (np.dtype(wide),)
        assert graph.values[0].tolist() == [[0, 32767 if wide is np.int16 else INF], [3, 0]]

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.zeros((2, 2), complex), "complex"),
            (np.array([["a", "b"], ["c", "d"]]), "text"),
            (np.array([[b"a", b"b"], [b"c", b"d"]]), "bytes"),
            (np.zeros((2, 2), "M8[s]"), "the array contains dates; pass bool, integers or floats"),
            (np.zeros((2, 2), [("x", "f8")]), "not numbers"),
        ],
    )
    @pytest.mark.parametrize("dtype", [None, np.float64])
    def test_what_has_no_order_is_refused(self, array: np.ndarray[Any, Any], message: str, dtype: Any) -> None:
        with pytest.raises(DTypeError, match=message):
            read_graph(array, MIN_PLUS, dtype=dtype)

    def test_also_as_truth_values(self) -> None:
        with pytest.raises(DTypeError, match="complex"):
            read_graph(np.zeros((2, 2), complex), BOOLEAN, nonedge=INF)

    @pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="longdouble is float64 here")
    def test_longdouble_is_refused_unless_rounding_is_asked_for(self) -> None:
        with pytest.raises(DTypeError, match="convert to float64 to round"):
            read_graph(np.ones((2, 2), np.longdouble), MIN_PLUS)

    @pytest.mark.parametrize("dtype", ["complex128", "no such dtype", "U5", np.float16])
    def test_dtypes_that_cannot_be_asked_for(self, dtype: Any) -> None:
        with pytest.raises(DTypeError):
            read_graph(ROADS, MIN_PLUS, dtype=dtype)

    def test_infinity_survives_a_change_of_dtype(self) -> None:
        small = matrix(ROADS, dtype=np.int16)
        assert small.tolist() == [[0, 3, 32767], [32767, 0, 4], [2, 32767, 0]]
        for dtype in (np.int64, np.uint8, np.float32, np.float64):
            np.testing.assert_array_equal(matrix(matrix(small, dtype=dtype), dtype=np.float64), ROADS)
        assert matrix(small, dtype=object).tolist() == ROADS.tolist()
        assert matrix(np.array([[0.0, -INF]] * 2), MAX_PLUS, dtype=np.int16).tolist() == [[0, -32768]] * 2
        assert matrix(np.array([[0, -32768]] * 2, dtype=np.int16), MAX_PLUS, dtype=np.float64).tolist() == [[0, -INF]] * 2

    @pytest.mark.parametrize("dtype", [np.int32, np.int64])
    def test_bounds_beyond_float16(self, dtype: Any) -> None:
        largest = np.iinfo(dtype).max
        assert matrix(np.array([[0, INF], [-65504, 7]], np.float16), dtype=dtype).tolist() == [[0, largest], [-65504, 7]]
        with pytest.raises(DTypeError, match="-inf, which"):
            matrix(np.array([[0, -INF]] * 2, np.float16), dtype=dtype)

    def test_no_infinity_where_the_semiring_has_none(self) -> None:
        assert matrix(np.array([[127]], dtype=np.int8), PLUS_TIMES).tolist() == [[127]]
        with pytest.raises(DTypeError, match="cannot hold"):
            read_graph(np.array([[INF]]), PLUS_TIMES, dtype=np.int32)

    @pytest.mark.parametrize(
        ("entry", "source", "target"),
        [
            (1.5, float, np.int32),
            (-1.0, float, np.uint8),
            (40000.0, float, np.int16),
            (2.0**63, float, np.int64),
            (-INF, float, np.int64),
            (1e300, float, np.float32),
            (70000, np.int32, np.uint16),
            (-1, np.int64, np.uint64),
            (2**63 + 1, np.uint64, np.int64),
        ],
    )
    def test_what_a_dtype_cannot_hold_is_refused(self, entry: Any, source: Any, target: Any) -> None:
        array = np.array([[0, 1], [entry, 0]], dtype=source)
        with pytest.raises(DTypeError, match=r"graph\[1, 0\].*cannot hold"):
            read_graph(array, MIN_PLUS, dtype=target)

    @pytest.mark.parametrize("source", [np.int64, np.float64, np.float16, object])
    @pytest.mark.parametrize(("semiring", "target", "entry"), STAND_INS)
    def test_what_stands_for_infinity_is_no_number(self, semiring: Semiring, source: Any, target: Any, entry: int) -> None:
        array = np.array([[1, 1], [entry, 1]], dtype=source)
        if int(array[1, 0]) != entry:
            pytest.skip("float16 has no such number")
        with pytest.raises(DTypeError, match=rf"graph\[1, 0\] is {entry}.*stands for .?∞ in {np.dtype(target)}"):
            read_graph(array, semiring, dtype=target)

    @pytest.mark.parametrize("dtype", [None, np.int16, np.int32, np.int64, np.uint8])
    @pytest.mark.parametrize("missing", [None, 0])
    def test_integers_of_a_list_are_numbers(self, dtype: Any, missing: Any) -> None:
        """Nobody has said that the largest integer stands for ∞ where no array says it."""
        largest = np.iinfo(dtype or np.int64).max
        for rows in ([[0, largest], [1, missing]], ((0, largest), (1, missing))):
            with pytest.raises(DTypeError, match=rf"graph\[0, 1\] is {largest}, which stands for ∞ in .*math\.inf"):
                read_graph(rows, MIN_PLUS, dtype=dtype)
            assert matrix(rows, dtype=np.float64)[0, 1] == float(largest)
            assert matrix(rows, dtype=object)[0, 1] == largest
            assert matrix(rows, PLUS_TIMES, dtype=dtype)[0, 1] == largest
            assert matrix(rows, nonedge=largest)[0, 1] == np.iinfo(np.int64).max
        lists = [np.array([0, largest], dtype or np.int64), np.array([1, 0], dtype or np.int64)]
        assert matrix(lists, dtype=float)[0, 1] == INF

    def test_objects_become_no_infinity(self) -> None:
        for entry in (-1, Fraction(-1), INF):
            with pytest.raises(DTypeError, match=r"graph\[0, 0\]"):
                read_graph(np.array([[entry]], dtype=object), PLUS_TIMES, dtype=np.uint8)
        infinite = np.array([[Decimal("inf"), Fraction(5)], [np.float32(INF), 2]], dtype=object)
        assert matrix(infinite, dtype=np.int16).tolist() == [[32767, 5], [32767, 2]]
        for dtype in (np.int16, np.float64):
            with pytest.raises(DTypeError, match=r"graph\[0, 0\].*does not fit"):
                read_graph(np.array([[Decimal("1e400")]], dtype=object), MIN_PLUS, dtype=dtype)
        with pytest.raises(DTypeError, match="not a number"):
            read_graph(np.array([[np.complex64(1 + 2j)]], dtype=object), MIN_PLUS, dtype=float)

    def test_rounding_a_float_is_allowed(self) -> None:
        assert matrix(np.array([[0.1]]), dtype=np.float32)[0, 0] == np.float32(0.1)

    def test_one_dtype_for_each_component(self) -> None:
        graph = read_graph((ROADS, ROADS), DISTANCE_HOPS, dtype=(np.float32, np.int32))
        assert graph.dtypes == (np.dtype("f4"), np.dtype("i4"))
        assert graph.values[1].tolist() == [[0, 3, 2**31 - 1], [2**31 - 1, 0, 4], [2, 2**31 - 1, 0]]


class TestShapesAndElements:
    @pytest.mark.parametrize("shape", [(2, 3), (3,), (), (2, 3, 2), (0, 1), (4, 0)])
    def test_not_square(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(ShapeError, match="square matrix"):
            read_graph(np.ones(shape), MIN_PLUS)

    def test_components_of_one_shape(self) -> None:
        with pytest.raises(ShapeError, match="one shape"):
            read_graph((np.ones((2, 2)), np.ones((3, 3))), DISTANCE_HOPS)

    @pytest.mark.parametrize("graph", [ROADS, (ROADS,), (ROADS, ROADS, ROADS)])
    def test_structured_needs_a_tuple(self, graph: Any) -> None:
        pairs = Semiring("pairs", min, lambda a, b: (a[0] + b[0], a[1] + b[1]), (INF, INF), (0, 0))
        with pytest.raises((GraphError, ShapeError), match="a tuple of 2 equally shaped arrays"):
            read_graph(graph, pairs)

    @pytest.mark.parametrize("entry", [math.nan, -INF])
    def test_outside_the_carrier(self, entry: float) -> None:
        weights = np.array([[0, 1], [entry, 0]])
        with pytest.raises(DomainError, match=r"graph\[1, 0\]"):
            read_graph(weights, MIN_PLUS)

    @pytest.mark.parametrize(
        ("entry", "semiring", "options"),
        [
            (math.nan, "min-plus", {}),
            (-1.0, "max-times", {}),
            (0.5, "min-plus", {"dtype": "int32"}),
            (math.nan, "min-plus", {"dtype": "int32"}),
            (2.0, "boolean", {"dtype": "bool"}),
        ],
    )
    def test_an_error_has_the_index_of_the_matrix_in_a_stack(self, entry: float, semiring: str, options: dict[str, Any]) -> None:
        stack = np.zeros((3, 2, 2, 2))
        stack[2, 1, 0, 1] = entry
        with pytest.raises(SemiringError, match=r"graph\[2, 1, 0, 1\]") as caught:
            sr.closure(stack, semiring, **options)
        assert caught.value.index == (2, 1)
        with pytest.raises(SemiringError, match=r"graph\[0, 1\]") as caught:
            sr.closure(stack[2, 1], semiring, **options)
        assert caught.value.index is None

    def test_nan_names_the_remedy(self) -> None:
        with pytest.raises(DomainError, match="nonedge=nan"):
            read_graph(np.array([[0, math.nan], [1, 0]]), MIN_PLUS)
        with pytest.raises(DomainError, match=r"graph\[0, 1\] is NaN.*nonedge=nan"):
            read_graph(np.array([[0, math.nan], [1, 0]]), MIN_PLUS, dtype=np.int32)


class TestOtherKinds:
    def test_nested_lists(self) -> None:
        assert matrix([[0, 3], [8, 0]]).dtype == np.int64
        assert matrix([[0, 3.5], [8, 0]]).dtype == np.float64
        assert matrix([[0, None], [8, 0]]).tolist() == [[0, MAX64], [8, 0]]
        assert matrix(((0, None), (8.5, 0))).tolist() == [[0, INF], [8.5, 0]]
        assert matrix([]).shape == (0, 0)
        assert matrix([[0, Fraction(1, 3)], [1, 0]]).dtype == object
        assert matrix([[0, 2**70], [1, 0]]).tolist() == [[0, 2**70], [1, 0]]
        with pytest.raises(ShapeError, match="nested list"):
            read_graph([[0, 1], [2]], MIN_PLUS)

    def test_lists_of_arrays_of_several_dtypes(self) -> None:
        least = np.array([[np.iinfo(np.int32).min]], np.int32)
        assert sr.closure([least.astype(">i4"), least], sr.MAX_MIN).tolist() == 2 * [[[np.iinfo(np.int32).max]]]
        with pytest.raises(DTypeError, match=r"several dtypes, and an extreme value of int32.*; convert all to one dtype"):
            sr.closure([least, least.astype(np.int64)], sr.MAX_MIN)

    def test_float16_in_lists(self) -> None:
        with np.errstate(all="raise"):
            assert sr.closure([np.zeros((1, 1), np.float16)] * 2, sr.MIN_PLUS).tolist() == [[[0]], [[0]]]

    def test_a_fault_in_a_list_of_sparse_graphs_is_that_of_the_graph_alone(self) -> None:
        graph = sp.coo_array((np.array([32767], np.uint16), ([1], [0])), shape=(2, 2))
        with pytest.raises(sr.OverflowRiskError, match="index 1 of the list"):
            sr.closure([sp.coo_array((2, 2), dtype=np.uint16), graph], sr.MIN_PLUS, dtype=np.uint16)

    def test_objects_stay_exact(self) -> None:
        third = Fraction(1, 3)
        assert matrix(np.array([[0, third], [None, 0]], dtype=object)).tolist() == [[0, third], [INF, 0]]
        assert matrix(np.array([[0, third], [1, 0]], dtype=object), dtype=np.float64)[0, 1] == 1 / 3
        with pytest.raises(DTypeError, match=r"graph\[0, 1\]"):
            read_graph(np.array([[0, third], [1, 0]], dtype=object), MIN_PLUS, dtype=np.int32)
        with pytest.raises(DTypeError, match="'x'"):
            read_graph(np.array([[0, "x"], [1, 0]], dtype=object), MIN_PLUS, dtype=np.float64)
        with pytest.raises(DomainError):
            read_graph(np.array([[0, math.nan], [1, 0]], dtype=object), MIN_PLUS)
        assert matrix(np.array([[0, math.nan], [1, 0]], dtype=object), nonedge=math.nan).tolist() == [[0, INF], [1, 0]]

    def test_sympy(self) -> None:
        sympy = pytest.importorskip("sympy")
        x = sympy.Symbol("x")
        graph = read_graph(sympy.Matrix([[0, x], [2, 0]]), PLUS_TIMES)
        assert graph.values[0].tolist() == [[0, x], [2, 0]]
        answer = graph.answer(graph.values[0])
        assert answer == sympy.Matrix([[0, x], [2, 0]])
        assert isinstance(answer, sympy.MatrixBase)
        assert matrix(sympy.ImmutableMatrix([[0, sympy.oo], [2, 0]])).tolist() == [[0, sympy.oo], [2, 0]]
        with pytest.raises(DomainError):
            read_graph(sympy.Matrix([[0, sympy.nan], [2, 0]]), MIN_PLUS)
        assert matrix(sympy.Matrix([[0, sympy.nan], [2, 0]]), nonedge=math.nan).tolist() == [[0, INF], [2, 0]]
        with pytest.raises(ShapeError):
            read_graph(sympy.Matrix([[0, x]]), PLUS_TIMES)
        with pytest.raises(GraphError, match="no matrix"):
            read_graph(x, PLUS_TIMES)

    def test_lists_of_rows_of_different_lengths(self) -> None:
        for rows, said in (
            ([[0, 1], [2]], "element 0 has 2 entries, and element 1 has 1 entry"),
            ([[0, 1], 2], "element 0 has 2 entries, and element 1 is no list"),
            (((0,), (1, 2)), "element 0 has 1 entry, and element 1 has 2 entries"),
        ):
            with pytest.raises(ShapeError, match=f"the nested list is ragged: {said}"):
                read_graph(rows, MIN_PLUS)

    def test_texts(self) -> None:
        with pytest.raises(DTypeError, match=r"the array contains text, not numbers; convert the entries, as by array\.astype\(float\)"):
            read_graph(np.array([["0", "1"], ["2", "0"]]), MIN_PLUS)
        pd = pytest.importorskip("pandas")
        for entry in ("0", "x", b"0"):
            objects = np.array([[0, 1.5], [entry, 0]], dtype=object)
            for mixed in (objects, pd.DataFrame(objects)):
                for semiring in (MIN_PLUS, PLUS_TIMES, MAX_MIN):
                    with pytest.raises(DomainError, match=rf"graph\[1, 0\] = {entry!r} is a text, .*; convert .* \.astype\(float\)"):
                        sr.closure(mixed, semiring)

            for dtype in (np.int32, bool):
                with pytest.raises(DTypeError, match=rf"graph\[1, 0\] = {entry!r} is a text; convert .* \.astype\(float\)"):
                    read_graph(np.array([[0, 1], [entry, 0]], dtype=object), BOOLEAN if dtype is bool else MIN_PLUS, dtype=dtype)

    @pytest.mark.parametrize("other", [0.5, INF, None])
    def test_an_integer_among_floats_is_not_rounded(self, other: Any) -> None:
        beyond = 2**53 + 1
        rows: list[list[Any]] = [[0, beyond, 1.5], [1, 0, other], [2**60, 2, 0]]
        with pytest.raises(DTypeError, match=rf"graph\[0, 1\] is {beyond}, which float64 would round, .*dtype=object"):
            read_graph(rows, MIN_PLUS)
        with pytest.raises(DTypeError, match=rf"graph\[1, 0, 1\] is {beyond}, "):
            read_graph([np.zeros((3, 3)).tolist(), rows], MIN_PLUS)
        with pytest.raises(DTypeError, match=rf"integer {beyond} at \[0, 1\], which float64 would round, .*dtype=object"):
            sr.matmul([[0, beyond], [1.5, 0]], np.zeros((2, 2)), MIN_PLUS)
        assert read_graph(rows, MIN_PLUS, dtype=object).values[0][0, 1] == beyond
        assert read_graph(rows, MIN_PLUS, dtype=np.float64).values[0][0, 1] == 2**53

    def test_an_integer_in_a_table_of_floats_is_not_rounded(self) -> None:
        table = pytest.importorskip("pandas").DataFrame([[0, 2**53 + 1], [0.5, 1]])
        with pytest.raises(DTypeError, match=r"graph\[0, 1\] is 9007199254740993, which float64 would round"):
            read_graph(table, MIN_PLUS)
        assert read_graph(table, MIN_PLUS, dtype=object).values[0][0, 1] == 2**53 + 1

    def test_pandas(self) -> None:
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame([[1.5, 0], [0, 2]], index=list("ab"), columns=list("ba"))
        graph = read_graph(frame, MIN_PLUS)
        assert graph.labels == ("a", "b")
        assert graph.values[0].tolist() == [[0, 1.5], [2, 0]]
        answer = graph.answer(graph.values[0])
        assert list(answer.index) == list(answer.columns) == ["a", "b"]
        with pytest.raises(GraphError, match="same vertices; 'b', 'c' differ"):
            read_graph(pd.DataFrame(np.ones((2, 2)), index=list("ab"), columns=list("ac")), MIN_PLUS)
        with pytest.raises(GraphError, match="twice"):
            read_graph(pd.DataFrame(np.ones((2, 2)), index=list("aa"), columns=list("aa")), MIN_PLUS)
        assert matrix(pd.DataFrame([[0, None], [2.0, 0]], dtype=object)).tolist() == [[0, INF], [2, 0]]

    def test_dlpack_and_the_array_interface(self) -> None:
        class OnlyDLPack:
            def __init__(self, device: int = 1) -> None:
                self.device = device

            def __dlpack__(self, **options: Any) -> Any:
                return ROADS.__dlpack__(**options)

            def __dlpack_device__(self) -> tuple[int, int]:
                return self.device, 0

            def __array_namespace__(self) -> Any:
                return types.SimpleNamespace(from_dlpack=lambda a: ("theirs", a))

        class OnlyInterface:
            __array_interface__ = ROADS.__array_interface__

        graph = read_graph(OnlyDLPack(), MIN_PLUS)
        assert np.shares_memory(graph.values[0], ROADS)
        assert graph.answer(ROADS)[0] == "theirs"
        assert not graph.owned
        np.testing.assert_array_equal(matrix(OnlyInterface()), ROADS)
        with pytest.raises(GraphError, match="neither in host memory"):
            read_graph(OnlyDLPack(7), MIN_PLUS)
        with pytest.raises(GraphError, match="GPU"):
            read_graph(OnlyDLPack(2), MIN_PLUS)

    def test_gpu_arrays_say_so(self) -> None:
        on_gpu = types.SimpleNamespace(__cuda_array_interface__={})
        with pytest.raises(GraphError, match="GPU"):
            read_graph(on_gpu, MIN_PLUS)

    @pytest.mark.parametrize("graph", [5, None, {1: {2: 3}}, object()])
    def test_what_is_no_graph(self, graph: Any) -> None:
        with pytest.raises(GraphError, match=r"is no graph; pass .*semiring\.edges"):
            read_graph(graph, MIN_PLUS)

    def test_a_tuple_of_results(self) -> None:
        graph = Graph((ROADS, ROADS), owned=False)
        assert graph.answer(ROADS) is ROADS
        assert len(graph.answer(ROADS, ROADS)) == 2


def test_reading_an_array_imports_no_extra() -> None:
    program = (
        "import sys, numpy; from semiring.graphs import read_graph, edges; from semiring.algebra.catalogue import MIN_PLUS;"
        "read_graph(numpy.ones((2, 2)), MIN_PLUS); read_graph(edges([(0, 1)]), MIN_PLUS);"
        "print(sorted({'scipy', 'networkx', 'igraph', 'rustworkx', 'pandas', 'sympy', 'psutil'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
