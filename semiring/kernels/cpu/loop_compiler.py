"""The compiler of loops: a function's syntax tree to LLVM IR, statement by statement.

An expression compiles to a `Value` (a number or a condition in a register), a tuple of values (an element), an `_Array`, or to itself if it
is a constant. A local variable is a slot on the stack, which LLVM turns into registers. A call of another loop is inlined.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from semiring.kernels.cpu import loop_source
from semiring.kernels.cpu.compiler import link
from semiring.kernels.cpu.emitter import ENTRY, I64, Emitter, Scalar, scalar_type
from semiring.kernels.cpu.loop_source import Parameter, Source
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.hardware import host

__all__ = ["compiled_ir"]

U64, F64 = Scalar("u", 8), Scalar("f", 8)

_OPERATIONS: dict[Any, tuple[str, Callable[..., Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.LShift: ("shl", operator.lshift),
    ast.RShift: ("shr", operator.rshift),
    ast.USub: ("neg", operator.neg),
    ast.UAdd: ("", operator.pos),
    ast.Invert: ("invert", operator.invert),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Is: ("eq", operator.is_),
    ast.IsNot: ("ne", operator.is_not),
}
"""The name of each operation in `Lowering`, and its function on constants."""

_BUILTINS = {f.__name__: f for f in (min, max, abs, int, float, bool)}


def compiled_ir(made: Source, types: Sequence[Any], constants: dict[str, Any]) -> str:
    """Return the IR of a loop as a function of its packed arguments."""
    em, place = Emitter(made.name, ENTRY), 0

    def word(kind: str) -> str:
        nonlocal place
        place += 1
        return em.load(kind, em.at("i64", "%args", place - 1), 8)

    def argument(parameter: Parameter, kinds: Any) -> Any:
        if parameter.kind == "int":
            return Value(word("i64"), I64)
        if parameter.kind == "float":
            return Value(word("double"), F64)
        if parameter.kind == "element":
            return tuple([Value(word(s.ir), s) for s in map(scalar_type, kinds)])
        if parameter.kind == "tuple":
            return parameter.dtype(*[argument(field, k) for (_, field), k in zip(parameter.fields, kinds, strict=True)])
        dtype: Any = parameter.dtype
        record = dtype if kinds is None and dtype.fields else None
        scalars = tuple(map(scalar_type, (np.dtype(np.uint8),) if record else kinds or (dtype,)))
        pointers, strides = zip(
            *[(em.load("ptr", word("ptr"), 8), word("i64") if parameter.axes == 2 else "") for _ in scalars], strict=True
        )
        return _Array(pointers, scalars, kinds is not None, strides if parameter.axes == 2 else None, record)

    given = {name: argument(p, kinds) for (name, p), kinds in zip(made.parameters.items(), types, strict=True)}
    _Compiler(em, place).function(_Frame(made), given | constants)
    return link([em.done()])


class _Array(NamedTuple):
    """An array in memory, or the arrays of an element's components."""

    pointers: tuple[str, ...]
    scalars: tuple[Scalar, ...]
    several: bool = False  # True if an entry is an element
    strides: tuple[str, ...] | None = None  # of a matrix, in entries
    record: Any = None  # the dtype of an array of records
    step: int = 0  # the bytes between the entries of a field


class _Slot(NamedTuple):
    """A local variable: its addresses and types, None for a condition; an element has several."""

    pointers: tuple[str, ...]
    scalars: tuple[Scalar | None, ...]
    several: bool


@dataclass
class _Frame:
    """A function that is being compiled: the values of names; for an inlined call, the label after the call, and the results."""

    made: Source
    names: dict[str, Any] | None = None
    exit: str = ""
    results: _Slot | None = None


class _Compiler:
    """Compiles the statements and expressions of a loop, and of the loops that it calls; results go to words from `place` on."""

    frame: _Frame
    node: ast.AST  # the construct that is being compiled

    def __init__(self, em: Emitter, place: int) -> None:
        self.em, self.place, self.low = em, place, Lowering(em, host(), 1)

    def function(self, frame: _Frame, given: dict[str, Any]) -> None:
        """Compile a function; arguments that it assigns to become variables."""
        tree = frame.made.tree
        self.frame, self.node = frame, tree
        changed = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        missing = {a.arg for a in (*tree.args.args, *tree.args.kwonlyargs)} ^ given.keys()
        if missing:
            self.refuse(f"{frame.made.name} has other arguments: {', '.join(sorted(missing))}")
        self.names = frame.names = {name: value for name, value in given.items() if name not in changed}
        for name in changed & given.keys():
            self.assign(name, given[name])
        self.statements(tree.body)

    def refuse(self, reason: str) -> NoReturn:
        """Raise an error that shows the construct."""
        self.frame.made.refuse(self.node, reason)

    # Statements.

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        """Compile some statements."""
        for node in nodes:
            self.node = node
            getattr(self, f"_{type(node).__name__}")(node)

    def _Pass(self, node: ast.Pass) -> None:
        pass

    def _Assert(self, node: ast.Assert) -> None:
        pass

    def _Expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def _Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.store(target, value)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        self.store(node.target, self._binary(node.op, self.value(node.target), self.value(node.value)))

    def _If(self, node: ast.If) -> None:
        test = self.condition(node.test)
        if isinstance(test, bool):
            self.statements(node.body if test else node.orelse)
            return
        with self.em.when(test):
            self.statements(node.body)
        if node.orelse:
            with self.em.otherwise():
                self.statements(node.orelse)

    def _While(self, node: ast.While) -> None:
        with self.em.turns([], lambda _: self.flag(self.value(node.test))):
            self.statements(node.body)

    def _For(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call)
        assert isinstance(node.target, ast.Name)
        ends = [self.value(a) for a in node.iter.args]
        step = ends.pop() if len(ends) == 3 else 1
        if not isinstance(step, int) or step == 0:
            self.refuse("the step of a range must be a constant")
        start, stop = (self.as_(x, I64) for x in (ends if len(ends) == 2 else [0, *ends]))
        count = self.slot(start)

        def more(_: list[str]) -> str:
            return self.low.compare("lt" if step > 0 else "gt", I64, self.read(count).name, stop.name)

        with self.em.turns([], more):
            i = self.read(count)
            self.fill(count, Value(self.em.let(f"add nsw i64 {i.name}, {step}"), I64))
            self.assign(node.target.id, i)
            self.statements(node.body)

    def _Break(self, node: ast.Break) -> None:
        self.em.leave_loop()

    def _Continue(self, node: ast.Continue) -> None:
        self.em.next_turn()

    def _Return(self, node: ast.Return) -> None:
        value, frame = None if node.value is None else self.value(node.value), self.frame
        if not frame.exit:
            for k, (v, hint) in enumerate(zip(() if value is None else _parts(value), frame.made.results, strict=True)):
                scalar = F64 if hint is float else I64
                self.em.store(scalar.ir, self.as_(v, scalar).name, self.em.at("i64", "%args", self.place + k), 8)
        elif frame.results is not None:
            self.fill(frame.results, value)
        elif value is not None:
            frame.results = self.slot(value)
        self.em.jump(frame.exit)

    # Variables.

    def slot(self, value: Any) -> _Slot:
        """Reserve a variable, and store its first value."""
        scalars = tuple([self.number(v).scalar for v in _parts(value)])
        made = _Slot(tuple([self.em.reserve(_ir(s)) for s in scalars]), scalars, isinstance(value, tuple))
        self.fill(made, value)
        return made

    def fill(self, slot: _Slot, value: Any) -> None:
        """Store a value in a variable."""
        if isinstance(value, tuple) != slot.several:
            self.refuse(f"the variable was {'an element' if slot.several else 'a number'} before")
        for pointer, scalar, v in zip(slot.pointers, slot.scalars, _parts(value), strict=True):
            self.em.store(_ir(scalar), self.as_(v, scalar).name, pointer, scalar.bytes if scalar else 1)

    def read(self, slot: _Slot) -> Any:
        """Read a variable."""
        both = zip(slot.pointers, slot.scalars, strict=True)
        found = tuple([Value(self.em.load(_ir(s), p, s.bytes if s else 1), s) for p, s in both])
        return found if slot.several else found[0]

    def assign(self, name: str, value: Any) -> None:
        """Give a name a value: numbers and elements have variables, and arrays only names."""
        known = self.names.get(name)
        if isinstance(known, _Slot):
            self.fill(known, value)
        elif all(isinstance(v, Value | int | float) for v in _parts(value)):
            self.names[name] = self.slot(value)
        else:
            self.names[name] = value

    def store(self, target: ast.expr, value: Any) -> None:
        """Assign a value to a name, to an entry of an array, or several values to several of these."""
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
        elif isinstance(target, ast.Subscript):
            array, places = self._entry(target)
            for address, scalar, v in zip(places, array.scalars, value if array.several else (value,), strict=True):
                self.em.store(scalar.ir, self.as_(v, scalar).name, address, scalar.bytes)
        elif isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(value) == len(target.elts):
            for each, v in zip(target.elts, value, strict=True):
                self.store(each, v)
        else:
            self.refuse("only names and entries of arrays can be assigned")

    # Expressions.

    def value(self, node: ast.expr) -> Any:
        """Compile an expression."""
        self.node = node if hasattr(node, "lineno") else self.node  # the parts of a chain of comparisons have no line
        return getattr(self, f"_{type(node).__name__}")(node)

    def _Constant(self, node: ast.Constant) -> Any:
        return node.value

    def _Tuple(self, node: ast.Tuple) -> Any:
        return tuple([self.value(each) for each in node.elts])

    def _Name(self, node: ast.Name) -> Any:
        for names in (self.names, self.frame.made.names, _BUILTINS):
            if node.id in names:
                found = names[node.id]
                return self.read(found) if isinstance(found, _Slot) else found
        self.refuse(f"{node.id} has no value here")

    def _Attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, _Array):
            if owner.record is None or node.attr not in owner.record.fields:
                self.refuse(f"the array has no field {node.attr}")
            dtype, offset = owner.record.fields[node.attr][:2]
            return _Array((self.em.at("i8", owner.pointers[0], offset),), (scalar_type(dtype),), step=owner.record.itemsize)
        found = getattr(owner, node.attr)
        if isinstance(found, tuple) and all(isinstance(v, np.generic) for v in found):  # a constant element
            kinds = [scalar_type(v.dtype) for v in found]
            return tuple([Value(s.literal(v), s) for s, v in zip(kinds, found, strict=True)])
        return found

    def _Subscript(self, node: ast.Subscript) -> Any:
        array = self.value(node.value)
        if isinstance(array, tuple) and not isinstance(array, _Array):
            place = self.value(node.slice)
            return array[place] if isinstance(place, int) else self.refuse("the number of a component must be a constant")
        if isinstance(array, _Array) and array.strides and not isinstance(node.slice, ast.Tuple):
            return self._row(array, node.slice)
        array, places = self._entry(node)
        found = [Value(self.em.load(s.ir, p, s.bytes), s) for s, p in zip(array.scalars, places, strict=True)]
        return tuple(found) if array.several else self._widened(found[0])

    def _row(self, matrix: _Array, row: ast.expr) -> _Array:
        i = self.as_(self.value(row), I64).name
        both = zip(matrix.pointers, matrix.scalars, matrix.strides or (), strict=True)
        return matrix._replace(pointers=tuple([self.em.at(s.ir, p, self.em.mul(i, stride)) for p, s, stride in both]), strides=None)

    def _entry(self, node: ast.Subscript) -> tuple[_Array, list[str]]:
        """Return an array, and the addresses of an entry."""
        array, index = self.value(node.value), node.slice
        if isinstance(array, _Array) and array.strides and isinstance(index, ast.Tuple) and len(index.elts) == 2:
            array, index = self._row(array, index.elts[0]), index.elts[1]
        if not isinstance(array, _Array) or array.strides:
            self.refuse("only an array has entries")
        i = self._widened(self.number(self.value(index))).name
        both = zip(array.pointers, array.scalars, strict=True)
        return array, [self.em.at(f"[{array.step} x i8]" if array.step else s.ir, p, i) for p, s in both]

    def _BinOp(self, node: ast.BinOp) -> Any:
        return self._binary(node.op, self.value(node.left), self.value(node.right))

    def _binary(self, op: ast.operator, x: Any, y: Any) -> Any:
        name, fold = _OPERATIONS[type(op)]
        if isinstance(x, int | float) and isinstance(y, int | float):
            return fold(x, y)
        scalar = self.common(x, y)
        if (name == "div") > (scalar.kind == "f") or (scalar.kind == "f" and name not in ("add", "sub", "mul", "div")):
            self.refuse(f"{type(op).__name__} is not for {'floats' if scalar.kind == 'f' else 'integers'}")
        a, b = self.as_(x, scalar).name, self.as_(y, scalar).name
        if name in ("floordiv", "mod") and isinstance(y, int) and y > 0 and y & (y - 1) == 0:  # a power of two
            shift = "shr" if name == "floordiv" else "and"
            return Value(self.low.arithmetic(shift, scalar, [a, str(y.bit_length() - 1 if shift == "shr" else y - 1)]), scalar)
        if scalar == I64 and name in ("add", "sub", "mul"):
            return Value(self.em.let(f"{name} nsw i64 {a}, {b}"), scalar)
        return Value(self.low.arithmetic(name, scalar, [a, b]), scalar)

    def _UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            test = self.condition(node.operand)
            return not test if isinstance(test, bool) else Value(self.low.negated(test), None)
        x, (name, fold) = self.value(node.operand), _OPERATIONS[type(node.op)]
        if isinstance(x, int | float):
            return fold(x)
        x = self._widened(self.number(x))
        return Value(self.low.arithmetic(name, self.common(x), [x.name]), x.scalar) if name else x

    def _BoolOp(self, node: ast.BoolOp) -> Any:
        stops = isinstance(node.op, ast.Or)  # the value that decides
        found: Any = not stops
        for k, each in enumerate(node.values):
            if isinstance(found, bool):
                if found == stops:
                    break
                found = self.condition(each)
            elif _is_simple(each):
                tests = found, self.flag(self.value(each))
                found = self.low.any_of(tests) if stops else self.low.all_of(tests)
            else:  # evaluated only where the others do not decide
                slot = self.slot(Value(found, None))
                with self.em.when(self.low.negated(found) if stops else found):
                    rest = self.value(ast.BoolOp(node.op, node.values[k:])) if k + 1 < len(node.values) else self.value(each)
                    self.fill(slot, Value(self.flag(rest), None))
                return self.read(slot)
        return found if isinstance(found, bool) else Value(found, None)

    def _Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) > 1:
            sides = [node.left, *node.comparators]
            pairs: list[ast.expr] = [ast.Compare(x, [op], [y]) for x, op, y in zip(sides, node.ops, sides[1:], strict=False)]
            return self.value(ast.BoolOp(ast.And(), pairs))
        x, y = self.value(node.left), self.value(node.comparators[0])
        name, fold = _OPERATIONS[type(node.ops[0])]
        if isinstance(node.ops[0], ast.Is | ast.IsNot):
            return Value(self.em.let(f"icmp {name} ptr {x.pointers[0]}, null"), None) if isinstance(x, _Array) else fold(x, y)
        if not isinstance(x, Value) and not isinstance(y, Value):
            return fold(x, y)
        scalar = self.common(x, y)
        return Value(self.low.compare(name, scalar, self.as_(x, scalar).name, self.as_(y, scalar).name), None)

    def _IfExp(self, node: ast.IfExp) -> Any:
        test = self.condition(node.test)
        if isinstance(test, bool):
            return self.value(node.body if test else node.orelse)
        if _is_simple(node.body) and _is_simple(node.orelse):
            return self._selected(test, self.value(node.body), self.value(node.orelse))
        with self.em.when(test):
            slot = self.slot(self.value(node.body))
        with self.em.otherwise():
            self.fill(slot, self.value(node.orelse))
        return self.read(slot)

    def _selected(self, test: str, x: Any, y: Any, more: str = "") -> Any:
        if isinstance(x, tuple):
            return tuple([self._selected(test, a, b, more) for a, b in zip(x, y, strict=True)])
        kinds = {v.scalar for v in (x, y) if isinstance(v, Value)}
        scalar = kinds.pop() if len(kinds) == 1 else self.common(x, y)
        a, b = (self.as_(v, scalar).name for v in (x, y))
        return Value(self.em.let(f"select i1 {test}, {_ir(scalar)} {a}, {_ir(scalar)} {b}{more}"), scalar)

    # Calls.

    def _Call(self, node: ast.Call) -> Any:
        function, args = self.value(node.func), [self.value(a) for a in node.args]
        constants: dict[str, Any] = {str(k.arg): self.value(k.value) for k in node.keywords}
        if hasattr(getattr(function, "__self__", None), "emit"):  # a method of `Inlined`
            return function.__self__.emit(function.__name__, self.em, args)
        if isinstance(function, Source):
            return self._inlined(function, dict(zip([a.arg for a in function.tree.args.args], args, strict=False)) | constants)
        if hasattr(function, "_fields") or (function in _BUILTINS.values() and not any(isinstance(a, Value) for a in args)):
            return function(*args, **constants)
        if function in (min, max):
            found = args[0]
            for each in args[1:]:
                found = self._extreme("lt" if function is min else "gt", found, each)
            return found
        if function is loop_source.select:
            return self._selected(self.flag(args[0]), args[1], args[2], ", !unpredictable !{}")
        if function is bool:
            return Value(self.flag(args[0]), None)
        if function is loop_source.fill:
            return self._filled(args[0], self.as_(args[1], I64).name, _parts(args[2]))
        if function is loop_source.prefetch:
            return self._prefetched(args[0], self.as_(args[1], I64).name)
        x = self._widened(self.number(args[0]))
        if function in (int, float):
            return self.low.convert(x, F64 if function is float else I64)
        if function is abs:
            return Value(self.low.arithmetic("abs", self.common(x), [x.name]), x.scalar)
        if function is loop_source.popcount:
            return Value(self.em.call("ctpop.i64", "i64", ("i64", x.name)), I64)
        if function is loop_source.trailing_zeros:
            return Value(self.em.call("cttz.i64", "i64", ("i64", x.name), ("i1", "true")), I64)
        self.refuse("a loop calls other loops, and few functions of Python")

    def _filled(self, array: _Array, count: str, element: Sequence[Any]) -> None:
        for pointer, s, x in zip(array.pointers, array.scalars, element, strict=True):
            width, value = max(1, self.low.target.vector_bytes // s.bytes), self.as_(x, s).name
            vector = self.em.splat(value, s, width)
            for i, lanes in self.em.by_vectors(count, width):
                self.em.put(s, vector if lanes > 1 else value, pointer, i, lanes)

    def _prefetched(self, array: _Array, i: str) -> None:
        for pointer, s in zip(array.pointers, array.scalars, strict=True):
            size = array.record.itemsize if array.record else array.step or s.bytes
            self.em.prefetch(self.em.at(f"[{size} x i8]", pointer, i), write=True)

    def _extreme(self, test: str, x: Any, y: Any) -> Value:
        scalar = self.common(x, y)
        a, b = self.as_(x, scalar).name, self.as_(y, scalar).name
        return Value(self.low.select(self.low.compare(test, scalar, b, a), scalar, b, a), scalar)

    def _inlined(self, function: Source, given: dict[str, Any]) -> Any:
        outer, inner = self.frame, _Frame(function, exit=self.em.fresh("exit"))
        self.function(inner, given)
        self.em.go_on(inner.exit)
        self.frame, self.names = outer, outer.names or {}
        return None if inner.results is None else self.read(inner.results)

    # Types.

    def number(self, x: Any) -> Value:
        """Return a number or a condition in a register, or as a literal."""
        if isinstance(x, Value):
            return x
        if isinstance(x, bool):
            return Value("true" if x else "false", None)
        if isinstance(x, int | float):
            scalar = I64 if isinstance(x, int) else F64
            return Value(scalar.literal(x), scalar)
        self.refuse(f"{x!r} is no number")

    def as_(self, x: Any, scalar: Scalar | None) -> Value:
        """Return a number as a type, a condition for None; an integer becomes a float, or the reverse, only by `float` and `int`."""
        if scalar is None:
            return Value(self.flag(x), None)
        if isinstance(x, int) or (isinstance(x, float) and scalar.kind == "f"):
            return Value(scalar.literal(x), scalar)
        v = self.number(x)
        if (v.scalar is not None and v.scalar.kind == "f") != (scalar.kind == "f"):
            self.refuse("an integer and a float meet here; write float(…) or int(…)")
        return self.low.convert(v, scalar)

    def common(self, *values: Any) -> Scalar:
        """Return the type of an operation on numbers."""
        scalars = {v.scalar for v in values if isinstance(v, Value) and v.scalar is not None}
        floats = {s for s in scalars if s.kind == "f"}
        return max(floats) if floats else U64 if U64 in scalars else I64

    def _widened(self, x: Value) -> Value:
        """Return an integer or a condition with 64 bits."""
        if x.scalar is not None and (x.scalar.kind == "f" or x.scalar.bytes == 8):
            return x
        return self.low.convert(x, I64)

    def condition(self, node: ast.expr) -> str | bool:
        """Return the truth of an expression: a bool if it is constant."""
        x = self.value(node)
        return self.flag(x) if isinstance(x, Value) else bool(x)

    def flag(self, x: Any) -> str:
        """Return the truth of a value in a register."""
        v = self.number(x if isinstance(x, Value) else bool(x))
        return v.name if v.scalar is None else self.low.compare("ne", v.scalar, v.name, v.scalar.literal(0))


def _ir(scalar: Scalar | None) -> str:
    return "i1" if scalar is None else scalar.ir


def _parts(value: Any) -> tuple[Any, ...]:
    """Return the components of an element, or a single value."""
    return value if isinstance(value, tuple) and not hasattr(value, "_fields") else (value,)


def _is_simple(node: ast.expr) -> bool:
    """Return True if an expression may be evaluated where Python would not: no entries, calls or quotients."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod | ast.Div):
        return False
    parts = (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))
    return not isinstance(node, ast.Subscript | ast.Call) and all(map(_is_simple, parts))
