"""Interned expressions: identity, simplification, evaluation and notation."""

import copy
import math
import operator
import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algebra import ops
from semiring.algebra.expression import Expr, chooses_operand, const, evaluate, node, nodes, show, var, where

A, B = var(0), var(1)


def test_equal_expressions_are_one_object():
    assert node("add", A, node("mul", B, const(2))) is node("add", var(0), node("mul", var(1), const(2)))
    assert node("add", A, B) is not node("add", B, A)


@pytest.mark.parametrize(("x", "y"), [(0, False), (0, 0.0), (0.0, -0.0), (1, 1.0), (1, True)])
def test_constants_keep_type_and_sign_of_zero(x, y):
    assert const(x) is not const(y)
    assert const(x) is const(x)


def test_copies_and_pickles_are_the_same_object():
    expr = node("add", A, where(node("lt", A, B), const(1.5), var(1, 2)))
    assert copy.deepcopy(expr) is expr
    assert copy.copy(expr) is expr
    assert pickle.loads(pickle.dumps(expr)) is expr


def test_interning_is_thread_safe():
    found: list[list[Expr]] = []
    start = threading.Barrier(8)

    def build():
        start.wait()
        found.append([node("add", const(i), node("mul", A, const(-i))) for i in range(300)])

    threads = [threading.Thread(target=build) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for same in zip(*found, strict=True):
        assert len(set(same)) == 1


@pytest.mark.parametrize(
    ("condition", "yes", "no", "expected"),
    [
        (node("lt", A, B), A, B, node("min", B, A)),
        (node("le", A, B), A, B, node("min", A, B)),
        (node("gt", A, B), B, A, node("min", A, B)),
        (node("ge", A, B), B, A, node("min", B, A)),
        (node("lt", A, B), B, A, node("max", A, B)),
        (node("le", A, B), B, A, node("max", B, A)),
        (node("gt", A, B), A, B, node("max", B, A)),
        (node("ge", A, B), A, B, node("max", A, B)),
        (node("eq", A, B), A, node("min", A, B), node("min", A, B)),
        (node("eq", A, B), node("where", node("lt", var(0, 1), var(1, 1)), B, A), node("max", B, A), node("max", B, A)),
        (node("eq", A, B), const(0), node("min", A, B), node("where", node("eq", A, B), const(0), node("min", A, B))),
        (node("ne", A, B), A, A, A),
        (const(True), A, B, A),
        (const(False), A, B, B),
        (node("not", node("lt", A, B)), B, A, node("min", B, A)),
        (node("lt", A, B), const(True), const(False), node("lt", A, B)),
    ],
)
def test_where_recognises_selections(condition, yes, no, expected):
    assert where(condition, yes, no) is expected


@given(st.integers(-3, 3), st.integers(-3, 3), st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"]), st.booleans())
def test_where_means_what_it_says(a, b, comparison, swap):
    yes, no = (B, A) if swap else (A, B)
    expected = (b if swap else a) if getattr(operator, comparison)(a, b) else (a if swap else b)
    assert evaluate([where(node(comparison, A, B), yes, no)], [a], [b], ops.TABLE) == (expected,)


@pytest.mark.parametrize(
    ("expr", "chooses"),
    [
        (node("min", A, B), True),
        (where(node("lt", node("add", A, const(1)), B), A, node("max", B, A)), True),
        (node("add", A, B), False),
        (where(node("lt", A, B), A, const(0)), False),
        (A, True),
    ],
)
def test_selection_by_construction(expr, chooses):
    assert chooses_operand(expr) is chooses


def test_nodes_come_after_their_arguments_and_once():
    shared = node("add", A, B)
    root = node("mul", shared, node("sub", shared, const(1)))
    order = list(nodes(root, shared))
    assert len(order) == len(set(order)) == 6
    for i, e in enumerate(order):
        assert all(a in order[:i] for a in e.args if isinstance(a, Expr))


def test_shared_and_deep_expressions_take_linear_time():
    doubled = A
    for _ in range(200):
        doubled = node("add", doubled, doubled)
    assert evaluate([doubled], [1], [], ops.TABLE) == (2**200,)
    text = show(doubled)
    assert len(text) < 5000
    assert text.startswith("t1")
    assert "t0 = " in text
    deep = A
    for _ in range(20_000):
        deep = node("add", deep, const(1))
    assert evaluate([deep], [0], [], ops.TABLE) == (20_000,)
    assert show(deep) == "an expression of 20002 operations"
    assert repr(deep) == show(deep)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (node("max", node("sub", node("add", A, B), const(1)), const(0)), "max(a + b - 1, 0)"),
        (node("sub", A, node("sub", B, const(1))), "a - (b - 1)"),
        (node("mul", node("add", A, B), node("neg", A)), "(a + b) * -a"),
        (node("neg", node("mul", A, B)), "-(a * b)"),
        (node("lt", node("lt", A, B), const(1)), "(a < b) < 1"),
        (node("not", node("eq", A, B)), "not a == b"),
        (
            node("where", node("lt", A, const(0)), const(-1), node("where", node("lt", B, const(0)), A, B)),
            "-1 if a < 0 else a if b < 0 else b",
        ),
        (node("and", node("or", A, B), node("invert", A)), "(a | b) & ~a"),
        (node("add", var(0, 1), var(1, 1)), "a[1] + b[1]"),
    ],
)
def test_notation_is_pythons(expr, text):
    assert show(expr) == text


def test_notation_of_structured_elements():
    assert show(node("min", A, B), components=2) == "min(a[0], b[0])"


_LEAVES = st.sampled_from([A, B, const(0), const(1.5), const(-2), const(True)])
_EXPRESSIONS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds(
            node,
            st.sampled_from(["add", "sub", "mul", "min", "max", "lt", "le", "gt", "ge", "eq", "ne"]),
            inner,
            inner,
        ),
        st.builds(node, st.sampled_from(["neg", "abs", "not"]), inner),
        st.builds(lambda c, x, y: where(node("lt", c, x), x, y), inner, inner, inner),
    ),
    max_leaves=12,
)


@given(_EXPRESSIONS, st.sampled_from([-1.5, 0, 2, math.inf]), st.sampled_from([-3, 0.5, 2]))
def test_what_is_shown_computes_the_same(expr, a, b):
    expected = evaluate([expr], [a], [b], ops.TABLE)[0]
    text = show(expr)
    if " where t0" in text or text.startswith("t"):
        return
    found = eval(text, {"a": a, "b": b, "inf": math.inf})  # the notation is Python's own, and the text is ours
    assert found == expected or (found != found and expected != expected)
