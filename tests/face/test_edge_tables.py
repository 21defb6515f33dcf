"""Edges from tables of pandas, polars, pyarrow and NumPy, from what speaks their protocols, and from arrays."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr

ROADS: dict[str, Any] = {"from": ["B", "A", "A"], "to": ["C", "B", "C"], "km": [2.0, 1.5, 7.0], "minutes": [3, 4, 5]}
FRAME = pd.DataFrame(ROADS)


def polars(data: Any) -> Any:
    return pytest.importorskip("polars").DataFrame(data)


def arrow(data: Any) -> Any:
    return pytest.importorskip("pyarrow").table(data)


class Exchanged:
    """A table that has nothing but one of the protocols."""

    def __init__(self, table: Any) -> None:
        self._table = table


class Capsules(Exchanged):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class Interchanged(Exchanged):
    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        return self._table.__dataframe__(nan_as_null, allow_copy)


KINDS = {
    "pandas": lambda data: pd.DataFrame(data),
    "pandas nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "pandas categories": lambda data: pd.DataFrame(data).astype({"from": "category", "to": "category"}),
    "polars": polars,
    "arrow": arrow,
    "arrow batch": lambda data: arrow(data).to_batches()[0],
    "arrow stream": lambda data: Capsules(arrow(data)),
    "interchange": lambda data: Interchanged(arrow(data)),
    "structured array": lambda data: pd.DataFrame(data).to_records(index=False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table(kind: str) -> None:
    table = KINDS[kind](ROADS)
    roads = sr.edges(table, source="from", target="to", weight="km")
    assert roads.labels == ("B", "C", "A")
    assert [type(label) for label in roads.labels] == [str] * 3
    assert isinstance(roads.weights, np.ndarray)
    assert {name: list(values) for name, values in roads.columns.items()} == {"km": ROADS["km"], "minutes": ROADS["minutes"]}
    assert roads.directed
    expected = sr.apsp(sr.edges(list(zip(ROADS["from"], ROADS["to"], ROADS["km"], strict=True))))
    np.testing.assert_array_equal(sr.apsp(roads), expected)
    np.testing.assert_array_equal(sr.apsp(sr.edges(table, weight="km")), expected)
    both = sr.edges(table, weight="minutes", directed=False, nodes="ABCD")
    np.testing.assert_array_equal(sr.apsp(both)[:3, :3], [[0, 4, 5], [4, 0, 3], [5, 3, 0]])
    assert sr.apsp(both)[3, 0] == math.inf


@given(st.lists(st.tuples(st.integers(-5, 300), st.integers(-5, 300), st.floats(0, 9)), max_size=30), st.booleans(), st.integers(0, 4))
def test_agrees_with_a_list_of_triples(rows: list[tuple[int, int, float]], named: bool, kind: int) -> None:
    name: Any = (lambda v: f"v{v}") if named else (lambda v: v)
    triples = [(name(u), name(v), w) for u, v, w in rows]
    columns: Any = [list(column) for column in zip(*triples, strict=True)] or [[], [], []]
    expected = sr.edges(triples)
    if kind == 0:
        found = sr.edges(*columns)
    elif kind == 1:
        found = sr.edges(*map(pd.Series, columns))
    elif kind == 2:
        found = sr.edges(pd.DataFrame(dict(zip("uvw", columns, strict=True))), weight="w")
    elif named:
        found = sr.edges(*(np.array(column, dtype=object) for column in columns))
    else:
        narrow = np.array(columns[0], dtype=np.int16), np.array(columns[1], dtype=np.int32)
        found = sr.edges(*narrow, np.array(columns[2])) if kind == 3 else sr.edges(np.array(rows).reshape(-1, 3))
    assert found.labels == expected.labels
    assert all(type(label) in (int, str) for label in found.labels)
    assert found.sources.tolist() == expected.sources.tolist()
    assert found.targets.tolist() == expected.targets.tolist()
    np.testing.assert_array_equal(np.array(found.weights, dtype=float), np.array(expected.weights, dtype=float))


@pytest.mark.parametrize(
    ("tails", "heads", "labels"),
    [
        ([10**12, 5], [5, -7], (-7, 5, 10**12)),
        (np.array([-100, 100], np.int8), np.array([3, 4], np.int8), (-100, 3, 4, 100)),
        (np.array([2**64 - 1], np.uint64), np.array([2**64 - 3], np.uint64), (2**64 - 3, 2**64 - 1)),
        (np.array([2**63], np.uint64), np.array([-1]), (-1, 2**63)),
        ([10**30], [5], (5, 10**30)),
        (np.array([1.0, 3.0]), np.array([3, 2]), (1, 2, 3)),
        (np.array([1.0, 3.0], dtype=np.float16), np.array([3, 2], dtype=np.float32), (1, 2, 3)),
        (np.array([1.5, 3.0]), np.array([3, 2]), (1.5, 3, 2)),
        ([True, False], [False, True], (False, True)),
        (np.array(["b", "a"]), ["c", "b"], ("b", "c", "a")),
        ([("a", 1), ("b", 2)], [("b", 2), ("c", 3)], (("a", 1), ("b", 2), ("c", 3))),
        ([], [], ()),
        (range(2), iter("ab"), (0, "a", 1, "b")),
        (
            np.array(["2020-01-02"], "M8[ns]"),
            np.array(["2020-01-01"], "M8[ns]"),
            (np.datetime64("2020-01-02"), np.datetime64("2020-01-01")),
        ),
    ],
)
def test_labels_of_arrays(tails: Any, heads: Any, labels: tuple[Any, ...]) -> None:
    found = sr.edges(tails, heads)
    assert found.labels == labels
    assert [type(label).__name__ for label in found.labels] == [type(label).__name__ for label in labels]
    assert list(found.weights) == [1] * len(found.sources)


def test_strided_and_read_only_arrays_stay_as_they_are() -> None:
    rows = np.arange(12.0).reshape(4, 3)
    rows.flags.writeable = False
    assert sr.edges(rows[::2, 0], rows[::2, 1], rows[::-2, 2]).weights.tolist() == [11.0, 5.0]  # type: ignore[union-attr]  # an array
    weights = np.ones(2)
    listed = sr.edges([0, 1], [1, 0], weights)
    weights[0] = 9
    assert list(listed.weights) == [1, 1]


def test_times_are_labels_as_their_library_shows_them() -> None:
    days = pd.to_datetime(["2020-01-01", "2020-01-02"])
    stamps = sr.edges(pd.DataFrame({"u": days[:1], "v": days[1:]})).labels
    assert stamps == (pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02"))
    assert all(isinstance(stamp, pd.Timestamp) for stamp in stamps)
    day, night = datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)
    for make in (polars, arrow):
        assert sr.edges(make({"u": [day], "v": [night]})).labels == (day, night)


@pytest.mark.parametrize("missing", [None, math.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("name", ["from", "to", "km"])
@pytest.mark.parametrize("ends", [["A", "B", "C"], [1, 2, 3]])
def test_a_missing_value_is_told_with_its_row(missing: Any, name: str, ends: list[Any]) -> None:
    frame = pd.DataFrame({"from": ends, "to": ends, "km": [1.0, 2.0, 3.0]}).astype(object)
    frame.loc[1, name] = missing
    with pytest.raises(sr.GraphError, match=f"the column '{name}' has no value in row 1 "):
        sr.edges(frame, weight="km")
    assert len(sr.edges(frame.dropna(), weight="km").sources) == 2


@pytest.mark.parametrize("name", ["from", "to", "km"])
@pytest.mark.parametrize("kind", ["pandas nullable", "polars", "arrow", "arrow stream"])
def test_null_is_a_missing_value(kind: str, name: str) -> None:
    data: dict[str, list[Any]] = {"from": ["A", "B"], "to": [1, 2], "km": [5, 6]}
    data[name][1] = None
    with pytest.raises(sr.GraphError, match=f"the column '{name}' has no value in row 1 "):
        sr.edges(KINDS[kind](data), weight="km")


def test_a_missing_end_of_an_array() -> None:
    for tails in ([1.0, math.nan], ["a", None], pd.Series([1, None], dtype="Int64")):
        with pytest.raises(sr.GraphError, match="tails has no value in row 1"):
            sr.edges(tails, [1, 2])
    with pytest.raises(sr.GraphError, match="heads has no value in row 0"):
        sr.edges(np.array([[1, math.nan, 3.0]]))


def test_weights_that_are_missing_in_arrays() -> None:
    """None is refused, as in a triple, and so is NaN, unless nonedge= names it."""
    with pytest.raises(sr.GraphError, match="1 of 2 edges has no 'weight' though others do, such as edge 0 from 'a' to 'b'"):
        sr.apsp(sr.edges(["a", "b"], ["b", "c"], [None, 2]))
    some = sr.edges([0, 1], [1, 0], [math.nan, 2.0])
    assert sr.apsp(some, nonedge=math.nan).tolist() == [[0, math.inf], [2, 0]]
    with pytest.raises(sr.DomainError, match=r"edge 0 from 0 to 1 = nan.*nonedge=nan"):
        sr.apsp(some)
    with pytest.raises(sr.DTypeError, match="edge 1 from 1 to 0 is <NA>"):
        sr.edges([0, 1], [1, 0], np.array([1, pd.NA], dtype=object))


class TestColumns:
    def test_no_column_is_called_weight(self) -> None:
        tolls = FRAME.rename(columns={"km": "toll", "minutes": "lanes"})
        with pytest.warns(sr.AssumptionWarning, match=r"each edge counts 1, .*pass weight='toll' to count that, or weight=1") as caught:
            roads = sr.edges(tolls.drop(columns="lanes"))
        assert caught[0].filename == __file__
        assert list(roads.weights) == [1, 1, 1]
        with pytest.warns(sr.AssumptionWarning, match=r"all have 'toll', 'lanes': pass one of them, as weight='toll'"):
            sr.edges(tolls)

    def test_what_is_meant_is_no_warning(self) -> None:
        assert list(sr.edges(FRAME, weight=1).weights) == [1, 1, 1]
        assert list(sr.edges(FRAME, weight=Fraction(1, 2)).weights) == [Fraction(1, 2)] * 3
        assert list(sr.edges(FRAME[["from", "to"]].assign(name="x", toll=True)).weights) == [1, 1, 1]
        assert list(sr.edges(FRAME.rename(columns={"km": "weight"})).weights) == ROADS["km"]

    def test_numbers_are_names_of_columns(self) -> None:
        frame = pd.DataFrame([["A", "B", 3.5, 7]])
        assert list(sr.edges(frame, source=0, target=1, weight=2).weights) == [3.5]
        assert list(sr.edges(frame, source=1, target=0, weight=4).weights) == [4]
        others: Any = sr.edges(frame, source=1, target=0, weight=3).columns
        assert list(others) == [2, 3]

    @pytest.mark.parametrize(
        ("frame", "options", "message"),
        [
            (
                FRAME,
                {"weight": "KM"},
                r"weight='KM': there is no such column; did you mean 'km'\? There are 'from', 'to', 'km', 'minutes'",
            ),
            (FRAME, {"weight": "weight"}, r"weight='weight': there is no such column"),
            (FRAME, {"weight": True}, r"weight=True: there is no such column"),
            (FRAME, {"weight": ["km"]}, r"weight=\['km'\]: there is no such column"),
            (FRAME, {"source": "form", "target": "to"}, r"source='form': .*did you mean 'from'"),
            (FRAME, {"source": "from"}, "name both, source= and target="),
            (FRAME, {"source": "to", "target": "to"}, "name one column, 'to'"),
            (FRAME.rename(columns={"to": "B"}), {}, r"which columns hold the two ends .*the columns are 'from', 'B', 'km', 'minutes'"),
            (FRAME.assign(source=1), {}, "which columns hold the two ends"),
            (FRAME.set_index(["from", "to"]), {}, r"'from', 'to' of the index are columns after reset_index\(\)"),
            (pd.DataFrame(np.eye(3)), {}, "the columns are 0, 1, 2"),
            (pd.DataFrame(), {}, "the columns are none"),
            (pd.DataFrame([[1, 2, 3]], columns=["u", "v", "v"]), {}, "two columns 'v'; rename one"),
        ],
    )
    def test_what_is_no_column(self, frame: Any, options: dict[str, Any], message: str) -> None:
        with pytest.raises(sr.GraphError, match=message):
            sr.edges(frame, **options)

    def test_a_lazy_table(self) -> None:
        lazy = polars(ROADS).lazy()
        with pytest.raises(sr.GraphError, match=r"yet to be computed; pass \.collect\(\)"):
            sr.edges(lazy)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (["3", "4"], r"edge 0 from 'A' to 'B' is '3', .*float\(text\) .*sr\.read_edges"),
            (pd.to_timedelta([1, 2], unit="s"), "edge 0 from 'A' to 'B' is Timedelta.*divide by a unit of time"),
            (pd.to_datetime(["2020", "2021"]), "Timestamp"),
            ([1j, 2j], "edge 0 .* no real number"),
            ([1, {}], "edge 1 from 'B' to 'C' is {}, which is no real number"),
        ],
    )
    def test_what_is_no_weight(self, weights: Any, message: str) -> None:
        with pytest.raises(sr.DTypeError, match=message):
            sr.edges(pd.DataFrame({"u": ["A", "B"], "v": ["B", "C"], "w": weights}), weight="w")
        with pytest.raises(sr.DTypeError, match=message):
            sr.edges(["A", "B"], ["B", "C"], pd.Series(weights))

    def test_the_text_that_is_no_number_is_named(self) -> None:
        table = pd.DataFrame({"u": ["A", "B"], "v": ["B", "C"], "km": ["7", "-"]})
        with pytest.raises(sr.DTypeError, match=r"the column 'km' is the weight by its name, but '-' in row 1 is no real number"):
            sr.edges(table)
        with pytest.raises(sr.DTypeError, match="edge 1 from 'B' to 'C' is '-', which is no real number; give the edge a number"):
            sr.edges(table, weight="km")

    def test_exact_weights_are_themselves(self) -> None:
        for exact in (2**70, Fraction(1, 3), Decimal("0.5")):
            roads = sr.edges(pd.DataFrame({"u": ["A"], "v": ["B"], "w": pd.Series([exact], dtype=object)}), weight="w")
            assert roads.weights[0] is exact
            assert sr.apsp(roads)[0, 1] == float(exact)
        flags = sr.edges(pd.DataFrame({"u": ["A"], "v": ["B"], "w": [False]}), weight="w")
        assert not sr.closure(flags, sr.BOOLEAN)[0, 1]


@pytest.mark.parametrize("listed", [[(0, 1, 2.0)], [(0, 1)], np.array([[0, 1]]), FRAME])
def test_vertices_that_no_memory_holds(listed: Any) -> None:
    with pytest.raises(sr.TooLargeError, match=r"the graph has 1,000,000,000,000 vertices, and their names take .* leave out vertices"):
        sr.edges(listed, nodes=range(10**12), weight="km" if listed is FRAME else None)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2], [2]), {}, "tails and heads have 2 and 1 entries"),
        (([1, 2], [2, 3], [1]), {}, "tails, heads and weights have 2, 2 and 1 entries"),
        (([1, 2], [2, 3], 5), {}, "weights is 5; pass a list"),
        (([1, 2], [2, 3], "km"), {}, "weights is 'km'; pass a list"),
        (("ab", "bc"), {}, "tails is 'ab'; pass a list"),
        (([1, 2], 7), {}, "heads is 7; pass a list"),
        (([(1, 2), (2, 3)], [1.0, 2.0]), {}, "tails is a list of tuples, as edges are, but heads is none"),
        (([[1, 2], [2, 3]], [1.0, 2.0]), {}, "tails is a list of lists"),
        ((np.ones((2, 2)), [1.0, 2.0]), {}, r"tails is an array of shape \(2, 2\), not one entry for each edge"),
        (([(1, 2)],), {"weights": [3]}, "weights without heads"),
        (([(1, 2)],), {"weight": "km"}, "name columns of a table, which a list is not"),
        ((FRAME, FRAME["to"]), {}, "of a table name the columns"),
        (([1], [2]), {"nodes": [1]}, r"edge 0, \(1, 2\), has a vertex that is not in nodes: 2"),
    ],
)
def test_arrays_that_do_not_fit(arguments: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(sr.GraphError, match=message):
        sr.edges(*arguments, **options)


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Capsules(arrow(ROADS))
    for module in ("pyarrow", "pyarrow.interchange"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(sr.SemiringError, match="pip install pyarrow"):
        sr.edges(stream)
