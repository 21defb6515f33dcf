"""Recorded expressions: immutable, interned nodes, so that structural equality is identity.

The tracer records a scalar callable as an expression; every target (NumPy, SymPy, LLVM, CUDA) is generated from it. A node is an
operation name with its arguments; leaves are ``var`` (operand, component) and ``const`` (value). Expressions are graphs with sharing and
may be deep: functions here walk them without recursion and visit a node once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from semiring.common import forks

__all__ = [
    "ARITHMETIC", "BITWISE", "CHOOSING", "COMPARISONS", "REAL", "Expr", "combined", "const", "evaluate", "flat", "fold",
    "is_condition", "node", "nodes", "show", "unflat", "var", "where",
]  # fmt: skip

COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
CHOOSING = COMPARISONS | {"var", "const", "min", "max", "where", "not", "and", "or", "xor"}
"""Operations that compare, choose or combine bits: no result is beyond the dtype of the operands."""

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False, repr=False, slots=True, weakref_slot=True)
class Expr:
    """One node, built by `node`, `var` or `const`, so that equal expressions are the same object."""

    op: str
    args: tuple[Any, ...]

    def __repr__(self) -> str:
        return show(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and pickles are interned again, so that equality stays identity; a flat list, because expressions may be deep.
        return _unpickled, (flat([self]),)


_interned: WeakValueDictionary[Any, Expr] = WeakValueDictionary()
_interning = forks.lock()  # reentrant, because a garbage collection in the critical section may run any code


def _intern(op: str, args: tuple[Any, ...], key: Any) -> Expr:
    with _interning:  # setdefault of a WeakValueDictionary is not atomic
        expr = _interned.get(key)
        if expr is None:
            _interned[key] = expr = Expr(op, args)
        return expr


def node(op: str, *args: Expr) -> Expr:
    """Apply the operation `op` to expressions."""
    # A parent keeps its interned arguments alive, so that an id identifies a value.
    return _intern(op, args, (op, *map(id, args)))


def var(operand: int, component: int = 0) -> Expr:
    """Return component `component` of the left (0) or right (1) operand."""
    return _intern("var", (operand, component), ("var", operand, component))


def const(value: Any) -> Expr:
    """Return a constant; the sign of zero and the type (bool, int, float) are part of the value."""
    return _intern("const", (value,), ("const", type(value), repr(value)))


def where(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """Build ``yes if condition else no``, and recognise a minimum or maximum written as a comparison.

    ``min(x, y)`` means ``y if y < x else x``, as in Python. Targets need a single operation, because a compare and a select cost twice
    as much as a minimum on every machine.
    """
    if yes is no:
        return yes
    if condition.op == "const":
        return yes if condition.args[0] else no
    if condition.op == "not":
        return where(condition.args[0], no, yes)
    if yes is const(True) and no is const(False) and is_condition(condition):
        return condition
    if condition.op in ("lt", "le", "gt", "ge"):
        small, large = condition.args if condition.op in ("lt", "le") else condition.args[::-1]
        strict = condition.op in ("lt", "gt")
        if yes is small and no is large:
            return node("min", no, yes) if strict else node("min", yes, no)
        if yes is large and no is small:
            return node("max", no, yes) if strict else node("max", yes, no)
    # For x = y, any choice between x and y is the minimum: so the first component of a minimum of tuples is a minimum.
    if condition.op == "eq" and no.op in ("min", "max") and set(no.args) == set(condition.args) and _chooses(yes, condition.args):
        return no
    if yes.op == no.op and yes.op not in ("var", "const"):
        # f(x, z) if c else f(y, z) = f(x if c else y, z): so Python's max of three becomes two maxima.
        differ = [i for i, (y, n) in enumerate(zip(yes.args, no.args, strict=True)) if y is not n]
        if len(differ) == 1:
            i = differ[0]
            return node(yes.op, *yes.args[:i], where(condition, yes.args[i], no.args[i]), *yes.args[i + 1 :])
    return node("where", condition, yes, no)


def _always(expr: Expr, holds: Callable[[Expr], bool], choices: tuple[str, ...] = ("where",)) -> bool:
    """Return True if `holds` is true of each expression among which the operations `choices` of `expr` choose."""
    stack, seen = [expr], {expr}
    while stack:
        expr = stack.pop()
        if holds(expr):
            continue
        if expr.op not in choices:
            return False
        below = set(expr.args[1:] if expr.op == "where" else expr.args) - seen
        seen |= below
        stack.extend(below)
    return True


def _chooses(expr: Expr, options: Sequence[Expr]) -> bool:
    return _always(expr, options.__contains__, ("where", "min", "max"))


def chooses_operand(expr: Expr) -> bool:
    """Return True if a scalar expression is by construction one of its two operands, like ``min(a, b)``."""
    return _chooses(expr, (var(0), var(1)))


def is_operation(expr: Expr, operations: Collection[str], component: int = 0) -> bool:
    """Return True if an expression is one of these operations on a component of both operands, in either order."""
    return expr.op in operations and {*expr.args} == {var(0, component), var(1, component)}


def nodes(*roots: Expr) -> Iterator[Expr]:
    """Yield every node below the roots once, arguments before the operations that use them."""
    seen: set[Expr] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        expr, done = stack.pop()
        if done:
            yield expr
        elif expr not in seen:
            seen.add(expr)
            stack.append((expr, True))
            stack.extend((a, False) for a in reversed(expr.args) if isinstance(a, Expr))


def flat(roots: Sequence[Expr]) -> tuple[tuple[Any, ...], ...]:
    """List the nodes of expressions, each once with arguments by number, and last the numbers of the roots.

    The text of the list identifies the expressions, in other processes too.

    >>> flat([node("add", var(0), const(1))])
    (('var', 0, 0), ('const', 1), ('add', 0, 1), (2,))
    """
    number: dict[Expr, int] = {}
    rows: list[tuple[Any, ...]] = []
    for expr in nodes(*roots):
        number[expr] = len(number)
        rows.append((expr.op, *(number[a] if isinstance(a, Expr) else a for a in expr.args)))
    return (*rows, tuple(number[root] for root in roots))


def unflat(rows: Sequence[tuple[Any, ...]]) -> tuple[Expr, ...]:
    """Build the expressions of a list from `flat`.

    >>> unflat(flat([node("add", var(0), const(1))]))
    (a + 1,)
    """
    made: list[Expr] = []
    leaves: dict[str, Callable[..., Expr]] = {"var": var, "const": const}
    for op, *args in rows[:-1]:
        made.append(leaves[op](*args) if op in leaves else node(op, *(made[i] for i in args)))
    return tuple(made[i] for i in rows[-1])


def _unpickled(rows: Sequence[tuple[Any, ...]]) -> Expr:
    return unflat(rows)[0]


def fold(
    roots: Sequence[Expr],
    left: Sequence[Value],
    right: Sequence[Value],
    constant: Callable[[Any], Value],
    operation: Callable[[str, list[Value]], Value],
) -> list[Value]:
    """Evaluate `roots` from the leaves up: components of the operands, ``constant(value)`` and ``operation(name, arguments)``."""
    operands = (left, right)
    value: dict[Expr, Value] = {}
    for expr in nodes(*roots):
        if expr.op == "var":
            operand, component = expr.args
            value[expr] = operands[operand][component]
        elif expr.op == "const":
            value[expr] = constant(expr.args[0])
        else:
            value[expr] = operation(expr.op, [value[a] for a in expr.args])
    return [value[root] for root in roots]


def combined(op: str, first: Expr, second: Expr) -> Expr:
    """Write ``&``, ``|`` or ``^`` of two conditions as a choice, an operation of every dtype and target.

    >>> combined("or", node("lt", var(0), var(1)), node("eq", var(1), const(0)))
    a < b or b == 0
    """
    yes = {"and": second, "or": const(True), "xor": node("not", second)}[op]
    return where(first, yes, const(False) if op == "and" else second)


def is_condition(expr: Expr) -> bool:
    """Return True if an expression is a comparison, or made of comparisons: the value is True or False."""
    return _always(expr, lambda e: e.op in COMPARISONS or e.op == "not" or (e.op == "const" and isinstance(e.args[0], bool)))


def evaluate(
    roots: Sequence[Expr],
    left: Sequence[Any],
    right: Sequence[Any],
    table: Mapping[str, Callable[..., Any]],
    constant: Callable[[Any], Any] = lambda value: value,
) -> tuple[Any, ...]:
    """Compute `roots` from the operands' components with the operations of `table`.

    >>> import operator
    >>> evaluate([node("add", var(0), const(1))], [41], [], {"add": operator.add})
    (42,)
    """
    return tuple(fold(roots, left, right, constant, lambda op, args: table[op](*args)))


_INFIX = {
    "eq": ("==", 4), "ne": ("!=", 4), "lt": ("<", 4), "le": ("<=", 4), "gt": (">", 4), "ge": (">=", 4), "or": ("|", 5),
    "xor": ("^", 6), "and": ("&", 7), "shl": ("<<", 8), "shr": (">>", 8), "add": ("+", 9), "sub": ("-", 9), "mul": ("*", 10),
    "div": ("/", 10), "floordiv": ("//", 10), "mod": ("%", 10),
}  # fmt: skip
_PREFIX = {"not": ("not ", 3), "neg": ("-", 11), "invert": ("~", 11)}
_ATOM = 12  # the precedence of a name or call; ``x if c else y`` has 1, ``or`` 1.5 and ``and`` 2
_LONG = 60  # the number of operations from which a repeated subexpression gets a name
_TOO_LONG = 400


def show(expr: Expr, components: int = 1) -> str:
    """Write an expression in Python's notation, with operands a and b, or a[0], a[1], … for several components.

    >>> show(node("mul", node("add", var(0), var(1)), const(2)))
    '(a + b) * 2'
    """
    order = list(nodes(expr))
    if len(order) > _TOO_LONG:
        return f"an expression of {len(order)} operations"
    uses = Counter(a for e in order for a in e.args if isinstance(a, Expr))
    size: dict[Expr, int] = {}
    for e in order:
        size[e] = 1 + sum(size[a] for a in e.args if isinstance(a, Expr))
    named: list[str] = []
    texts: dict[Expr, tuple[str, float]] = {}
    for e in order:
        texts[e] = _text(e, texts, components)
        if size[expr] > _LONG and size[e] > 3 and uses[e] > 1:
            named.append(f"t{len(named)} = {texts[e][0]}")
            texts[e] = f"t{len(named) - 1}", _ATOM
    return texts[expr][0] + (f", where {', '.join(named)}" if named else "")


def _text(expr: Expr, texts: Mapping[Expr, tuple[str, float]], components: int) -> tuple[str, float]:
    """Write a node, and return the precedence of its outermost operator."""

    def argument(i: int, tighter_than: float) -> str:
        text, binding = texts[expr.args[i]]
        return text if binding > tighter_than else f"({text})"

    if expr.op == "var":
        operand, component = expr.args
        return "ab"[operand] + ("" if components == 1 and component == 0 else f"[{component}]"), _ATOM
    if expr.op == "const":
        text = repr(expr.args[0])
        return text, 11 if text.startswith("-") else _ATOM
    if expr.op in _INFIX:
        symbol, binding = _INFIX[expr.op]
        # Python chains comparisons, so neither side may be a bare comparison; other operators group to the left.
        left = binding if expr.op in COMPARISONS else binding - 1
        return f"{argument(0, left)} {symbol} {argument(1, binding)}", binding
    if expr.op in _PREFIX:
        symbol, binding = _PREFIX[expr.op]
        return f"{symbol}{argument(0, binding - 1)}", binding
    if expr.op == "where" and is_condition(expr):
        _, yes, no = expr.args
        if no is const(False):
            return f"{argument(0, 1.5)} and {argument(1, 1.5)}", 2
        if yes is const(True):
            return f"{argument(0, 1)} or {argument(2, 1)}", 1.5
    if expr.op == "where":
        return f"{argument(1, 1)} if {argument(0, 1)} else {argument(2, 0)}", 1
    return f"{expr.op}({', '.join(texts[a][0] for a in expr.args)})", _ATOM


ARITHMETIC = {"add", "sub", "mul", "div", "floordiv", "mod", "neg", "abs"}
REAL = {"div", "exp", "expm1", "log", "log1p", "sqrt"}
BITWISE = {"and", "or", "xor", "invert", "shl", "shr"}
