"""The compiler of `loops`: a function's syntax tree to LLVM IR, statement by statement.

An expression compiles to a `Value` (a number or a condition in a register), a tuple of values (an element), an `_Array`, or to itself if it
is a constant. A local variable is a slot on the stack, which LLVM turns into registers. A call of another loop is inlined.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from semiring.kernels.cpu import loops
from semiring.kernels.cpu.compiler import link
from semiring.kernels.cpu.emitter import ENTRY, I64, Emitter, Scalar, scalar_type
from semiring.kernels.cpu.lowering import Value
from semiring.kernels.cpu.loops import Loop, Parameter

__all__ = ["check", "compiled_ir"]

U64, F64 = Scalar("u", 8), Scalar("f", 8)

_STATEMENTS = (
    ast.Assign, ast.AugAssign, ast.If, ast.While, ast.For, ast.Break, ast.Continue, ast.Return, ast.Expr, ast.Pass, ast.Assert,
)  # fmt: skip
_EXPRESSIONS = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Tuple,
)  # fmt: skip

_ARITHMETIC: dict[Any, tuple[Callable[[Any, Any], Any], str, str]] = {
    ast.Add: (operator.add, "add", "fadd"),
    ast.Sub: (operator.sub, "sub", "fsub"),
    ast.Mult: (operator.mul, "mul", "fmul"),
    ast.Div: (operator.truediv, "", "fdiv"),
    ast.FloorDiv: (operator.floordiv, "floor", ""),
    ast.Mod: (operator.mod, "modulo", ""),
    ast.BitAnd: (operator.and_, "and", ""),
    ast.BitOr: (operator.or_, "or", ""),
    ast.BitXor: (operator.xor, "xor", ""),
    ast.LShift: (operator.lshift, "shl", ""),
    ast.RShift: (operator.rshift, "shr", ""),
}
_COMPARISONS: dict[Any, tuple[Callable[[Any, Any], Any], str, str]] = {
    ast.Lt: (operator.lt, "lt", "olt"),
    ast.LtE: (operator.le, "le", "ole"),
    ast.Gt: (operator.gt, "gt", "ogt"),
    ast.GtE: (operator.ge, "ge", "oge"),
    ast.Eq: (operator.eq, "eq", "oeq"),
    ast.NotEq: (operator.ne, "ne", "une"),
    ast.Is: (operator.is_, "eq", ""),
    ast.IsNot: (operator.is_not, "ne", ""),
}
_UNARY: dict[Any, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_}
_BUILTINS = {f.__name__: f for f in (min, max, abs, int, float, bool)}


def check(made: Loop[Any, Any]) -> None:
    """Refuse a function with something that the compiler does not know, by file, line and construct."""
    arguments = made.tree.args
    if arguments.posonlyargs or arguments.vararg or arguments.kwarg or arguments.defaults:
        refuse(made, made.tree, "a loop has neither defaults nor *args")
    for argument in arguments.args:
        if argument.annotation is None:
            refuse(made, argument, f"the argument {argument.arg} has no annotation")
    for body in made.tree.body:
        _check(made, body)


def _check(made: Loop[Any, Any], node: ast.AST) -> None:
    if isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS):
        refuse(made, node, f"a loop has no {type(node).__name__}")
    if isinstance(node, ast.expr) and not isinstance(node, _EXPRESSIONS):
        refuse(made, node, f"a loop has no {type(node).__name__}")
    if isinstance(node, ast.operator | ast.cmpop) and type(node) not in _ARITHMETIC and type(node) not in _COMPARISONS:
        return refuse(made, node, f"a loop has no {type(node).__name__}")
    if isinstance(node, ast.For):
        counts = isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range"
        if not counts or not isinstance(node.target, ast.Name):
            refuse(made, node, "a loop counts with one variable over a range")
    if isinstance(node, ast.For | ast.While) and node.orelse:
        refuse(made, node, "a loop has no else of a for or while")
    if isinstance(node, ast.Call) and any(k.arg is None for k in node.keywords):
        refuse(made, node, "a loop has no ** in calls")
    for child in ast.iter_child_nodes(node):
        _check(made, child)


def refuse(made: Loop[Any, Any], node: ast.AST, text: str) -> NoReturn:
    """Raise a SyntaxError that shows the line of a loop."""
    line = getattr(node, "lineno", 1)
    shown = made.source.splitlines()[line - 1]
    raise SyntaxError(text, (made.file, made.line + line - 1, getattr(node, "col_offset", 0) + 1, shown))


def compiled_ir(made: Loop[Any, Any], types: Sequence[Any], constants: dict[str, Any]) -> str:
    """Return the IR of a loop as a function of its packed arguments."""
    em = Emitter(made.name, ENTRY)
    compiler = _Compiler(em, made)
    place = 0

    def word(kind: str) -> str:
        nonlocal place
        place += 1
        return em.load(kind, em.at("i64", "%args", place - 1), 8)

    def argument(parameter: Parameter, scalars: Any) -> Any:
        if parameter.kind == "int":
            return Value(word("i64"), I64)
        if parameter.kind == "float":
            return Value(word("double"), F64)
        if parameter.kind == "tuple":
            return parameter.dtype(*[argument(each, s) for (_, each), s in zip(parameter.fields, scalars, strict=True)])
        record = parameter.dtype if parameter.dtype is not None and parameter.dtype.fields else None
        kinds = scalars or ((Scalar("u", 1) if record else scalar_type(parameter.dtype)),)
        parts = [(word("ptr"), word("i64") if parameter.axes == 2 else None) for _ in kinds]
        pointers, strides = zip(*parts, strict=True)
        return _Array(pointers, kinds, scalars is not None, strides if parameter.axes == 2 else None, record)

    given = {name: argument(p, s) for (name, p), s in zip(made.parameters.items(), types, strict=True)}
    compiler.place = place
    compiler.body(given | constants)
    return link([em.done()])


class _Array(NamedTuple):
    """An array in memory, or the arrays of an element's components."""

    pointers: tuple[str, ...]
    scalars: tuple[Scalar, ...]
    several: bool  # True if an entry is an element, a tuple
    strides: tuple[Any, ...] | None = None  # of two-dimensional arrays, in entries
    record: Any = None  # the dtype of an array of records
    step: int = 0  # the bytes between the entries of a field


class _Slot(NamedTuple):
    """A local variable: its addresses and types, None for a condition; an element has several."""

    pointers: tuple[str, ...]
    scalars: tuple[Scalar | None, ...]
    several: bool


@dataclass
class _Frame:
    """A function that is being compiled: names, the results of an inlined call, and the label after the call."""

    made: Loop[Any, Any]
    names: dict[str, Any]
    exit: str = ""
    results: _Slot | None = None


class _Compiler:
    """Compiles the statements and expressions of a loop, and of the loops that it calls."""

    def __init__(self, em: Emitter, made: Loop[Any, Any]) -> None:
        self.em, self.place = em, 0
        self.frame = _Frame(made, {})

    def body(self, given: dict[str, Any]) -> None:
        """Compile the function's statements; arguments that the function assigns to become variables."""
        changed = {n.id for n in ast.walk(self.frame.made.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.frame.names = {name: value for name, value in given.items() if name not in changed}
        for name in changed & given.keys():
            self.assign(name, given[name], self.frame.made.tree)
        self.statements(self.frame.made.tree.body)

    def refuse(self, node: ast.AST, text: str) -> NoReturn:
        refuse(self.frame.made, node, text)

    # Statements.

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            getattr(self, f"_{type(node).__name__}")(node)

    def _Pass(self, node: ast.Pass) -> None:
        pass

    def _Assert(self, node: ast.Assert) -> None:
        pass

    def _Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def _Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.store(target, value)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        where: Any = ast.copy_location(replace_context(node.target), node.target)
        self.store(node.target, self._binary(node, node.op, self.value(where), self.value(node.value)))

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
        with self.em.turns([], lambda _: self.flag(self.condition(node.test))):
            self.statements(node.body)

    def _For(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call)
        assert isinstance(node.target, ast.Name)
        ends = [self.value(a) for a in node.iter.args]
        step = ends.pop() if len(ends) == 3 else 1
        if not isinstance(step, int) or step == 0:
            self.refuse(node, "the step of a range is a constant")
        start, stop = (self.integer(x, node) for x in (ends if len(ends) == 2 else [0, *ends]))
        (counter,) = self.slot([Value(start, I64)], several=False).pointers
        test = "slt" if step > 0 else "sgt"
        with self.em.turns([], lambda _: self.em.let(f"icmp {test} i64 {self.em.load('i64', counter, 8)}, {stop}")):
            i = self.em.load("i64", counter, 8)
            self.em.store("i64", self.em.let(f"add nsw i64 {i}, {step}"), counter, 8)
            self.assign(node.target.id, Value(i, I64), node)
            self.statements(node.body)

    def _Break(self, node: ast.Break) -> None:
        self.em.leave_loop()

    def _Continue(self, node: ast.Continue) -> None:
        self.em.next_turn()

    def _Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.value(node.value)
        frame = self.frame
        hints = frame.made.results
        values = () if value is None else value if len(hints) > 1 else (value,)
        if not frame.exit:
            for k, (v, hint) in enumerate(zip(values, hints, strict=True)):
                word = self.as_(v, F64 if hint is float else I64, node)
                self.em.store(word.scalar.ir, word.name, self.em.at("i64", "%args", self.place + k), 8)  # type: ignore[union-attr]
            self.em.jump("")
            return
        if value is not None:
            several = isinstance(value, tuple)
            parts = [self.number(v, node) for v in (value if several else (value,))]
            if frame.results is None:
                frame.results = self.slot(parts, several=several)
            else:
                self.fill(frame.results, parts, node)
        self.em.jump(frame.exit)

    # Variables.

    def slot(self, values: Sequence[Value], *, several: bool) -> _Slot:
        """Reserve a variable, and store its first value."""
        scalars = tuple(v.scalar for v in values)
        made = _Slot(tuple(self.em.reserve("i1" if s is None else s.ir) for s in scalars), scalars, several)
        for pointer, v in zip(made.pointers, values, strict=True):
            self._write(pointer, v)
        return made

    def _write(self, pointer: str, v: Value) -> None:
        ir, size = ("i1", 1) if v.scalar is None else (v.scalar.ir, v.scalar.bytes)
        self.em.store(ir, v.name, pointer, size)

    def fill(self, slot: _Slot, values: Sequence[Any], node: ast.AST) -> None:
        for pointer, scalar, v in zip(slot.pointers, slot.scalars, values, strict=True):
            self._write(pointer, self.as_(v, scalar, node))

    def assign(self, name: str, value: Any, node: ast.AST) -> None:
        """Give a name a value: numbers and elements are kept in a slot, other values under the name alone."""
        known = self.frame.names.get(name)
        several = isinstance(value, tuple) and not hasattr(value, "_fields")
        if not several and not isinstance(value, Value | int | float):
            if isinstance(known, _Slot):
                self.refuse(node, f"{name} is a number")
            self.frame.names[name] = value
        elif isinstance(known, _Slot):
            if several != known.several:
                self.refuse(node, f"{name} was {'an element' if known.several else 'a number'} before")
            self.fill(known, value if several else (value,), node)
        else:
            self.frame.names[name] = self.slot([self.number(v, node) for v in (value if several else (value,))], several=several)

    def store(self, target: ast.expr, value: Any) -> None:
        """Assign a value to a name, an entry of an array, or several of these."""
        if isinstance(target, ast.Name):
            self.assign(target.id, value, target)
        elif isinstance(target, ast.Subscript):
            array = self.value(target.value)
            if not isinstance(array, _Array):
                self.refuse(target, "only entries of arrays are assigned")
            parts = value if array.several else (value,)
            for address, scalar, v in zip(self.places(array, target), array.scalars, parts, strict=True):
                new = self.as_(v, scalar, target)
                self.em.store(scalar.ir, new.name, address, scalar.bytes)
        elif isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(value) == len(target.elts):
            for each, v in zip(target.elts, value, strict=True):
                self.store(each, v)
        else:
            self.refuse(target, "this cannot be assigned")

    # Expressions.

    def value(self, node: ast.expr) -> Any:
        return getattr(self, f"_{type(node).__name__}")(node)

    def _Constant(self, node: ast.Constant) -> Any:
        return node.value

    def _Tuple(self, node: ast.Tuple) -> Any:
        return tuple([self.value(each) for each in node.elts])

    def _Name(self, node: ast.Name) -> Any:
        names = self.frame.names
        if node.id not in names:
            if node.id in self.frame.made.names:
                return self.frame.made.names[node.id]
            if node.id in _BUILTINS:
                return _BUILTINS[node.id]
            self.refuse(node, f"{node.id} has no value here")
        found = names[node.id]
        if not isinstance(found, _Slot):
            return found
        read = []
        for pointer, s in zip(found.pointers, found.scalars, strict=True):
            read.append(Value(self.em.load("i1" if s is None else s.ir, pointer, 1 if s is None else s.bytes), s))
        return tuple(read) if found.several else read[0]

    def _Attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, _Array):
            if owner.record is None or node.attr not in owner.record.fields:
                self.refuse(node, f"the array has no field {node.attr}")
            dtype, offset = owner.record.fields[node.attr][:2]
            return _Array((self.em.at("i8", owner.pointers[0], offset),), (scalar_type(dtype),), several=False, step=owner.record.itemsize)
        if hasattr(owner, "emit"):
            return owner.emit(node.attr, self.em, ())
        return getattr(owner, node.attr)

    def _Subscript(self, node: ast.Subscript) -> Any:
        array = self.value(node.value)
        if isinstance(array, tuple) and not isinstance(array, _Array):
            place = self.value(node.slice)
            if not isinstance(place, int):
                self.refuse(node, "a component of an element has a constant number")
            return array[place]
        if not isinstance(array, _Array):
            self.refuse(node, "only arrays and elements have entries")
        if array.strides and not isinstance(node.slice, ast.Tuple):
            row = self.integer(self.value(node.slice), node)
            return array._replace(pointers=tuple(self._rows(array, row)), strides=None)
        found = [self.loaded(s, self.em.load(s.ir, p, s.bytes), array) for s, p in zip(array.scalars, self.places(array, node), strict=True)]
        return tuple(found) if array.several else found[0]

    def _rows(self, array: _Array, row: str) -> list[str]:
        assert array.strides is not None
        both = zip(array.pointers, array.scalars, array.strides, strict=True)
        return [self.em.at(s.ir, p, self.em.let(f"mul nsw i64 {row}, {stride}")) for p, s, stride in both]

    def places(self, array: _Array, node: ast.Subscript) -> list[str]:
        """Return the addresses of an entry."""
        index: Any = node.slice
        if isinstance(index, ast.Tuple):
            array = array._replace(pointers=tuple(self._rows(array, self.integer(self.value(index.elts[0]), node))))
            index = index.elts[1]
        i = self.integer(self.value(index), node)
        return [self.em.at(f"[{array.step} x i8]" if array.step else s.ir, p, i) for p, s in zip(array.pointers, array.scalars, strict=True)]

    def loaded(self, scalar: Scalar, name: str, array: _Array) -> Value:
        """Widen an integer to 64 bits, unless it belongs to an element."""
        if array.several or scalar.kind == "f" or scalar.bytes == 8:
            return Value(name, scalar)
        return Value(self.em.let(f"{'sext' if scalar.kind == 'i' else 'zext'} {scalar.ir} {name} to i64"), I64)

    def _BinOp(self, node: ast.BinOp) -> Any:
        return self._binary(node, node.op, self.value(node.left), self.value(node.right))

    def _binary(self, node: ast.AST, op: ast.operator, x: Any, y: Any) -> Any:
        fold, integers, floats = _ARITHMETIC[type(op)]
        if isinstance(x, int | float) and isinstance(y, int | float):
            return fold(x, y)
        scalar = F64 if floats == "fdiv" else self.common((x, y), node)
        a, b = self.as_(x, scalar, node).name, self.as_(y, scalar, node).name
        if scalar.kind == "f":
            if not floats:
                self.refuse(node, f"{type(op).__name__} is for integers")
            return Value(self.em.let(f"{floats} {scalar.ir} {a}, {b}"), scalar)
        if integers in ("floor", "modulo"):
            return self._divided(integers, scalar, a, b, y)
        if integers == "shr":
            integers = "ashr" if scalar == I64 else "lshr"
        exact = " nsw" if scalar == I64 and integers in ("add", "sub", "mul") else ""
        return Value(self.em.let(f"{integers}{exact} i64 {a}, {b}"), scalar)

    def _divided(self, op: str, scalar: Scalar, a: str, b: str, divisor: Any) -> Value:
        """Emit a quotient that is rounded down, or its remainder, as Python does."""
        let, floor = self.em.let, op == "floor"
        if isinstance(divisor, int) and divisor > 0 and divisor & (divisor - 1) == 0:
            shift = "ashr" if scalar == I64 else "lshr"
            return Value(let(f"{shift} i64 {a}, {divisor.bit_length() - 1}") if floor else let(f"and i64 {a}, {divisor - 1}"), scalar)
        if scalar == U64:
            return Value(let(f"{'udiv' if floor else 'urem'} i64 {a}, {b}"), scalar)
        rest = let(f"srem i64 {a}, {b}")
        other = let(f"icmp slt i64 {let(f'xor i64 {rest}, {b}')}, 0")
        inexact = let(f"and i1 {let(f'icmp ne i64 {rest}, 0')}, {other}")
        if floor:
            return Value(let(f"sub i64 {let(f'sdiv i64 {a}, {b}')}, {let(f'zext i1 {inexact} to i64')}"), scalar)
        return Value(let(f"select i1 {inexact}, i64 {let(f'add i64 {rest}, {b}')}, i64 {rest}"), scalar)

    def _UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            test = self.condition(node.operand)
            return not test if isinstance(test, bool) else Value(self.em.let(f"xor i1 {test}, true"), None)
        x = self.value(node.operand)
        if isinstance(x, int | float):
            return _UNARY[type(node.op)](x)
        x = self.number(x, node)
        if isinstance(node.op, ast.UAdd):
            return x
        if isinstance(node.op, ast.Invert):
            return self._binary(node, ast.BitXor(), x, -1)
        if x.scalar is not None and x.scalar.kind == "f":
            return Value(self.em.let(f"fneg {x.scalar.ir} {x.name}"), x.scalar)
        return self._binary(node, ast.Sub(), 0, x)

    def _BoolOp(self, node: ast.BoolOp) -> Any:
        stops = isinstance(node.op, ast.Or)  # the value that decides
        found: Any = not stops
        for k, each in enumerate(node.values):
            if isinstance(found, bool):
                if found == stops:
                    break
                found = self.condition(each)
            elif _is_simple(each):
                other = self.flag(self.condition(each))
                found = self.em.let(f"{'or' if stops else 'and'} i1 {found}, {other}")
            else:  # evaluated only where needed
                rest = ast.copy_location(ast.BoolOp(node.op, node.values[k:]) if k + 1 < len(node.values) else each, each)
                slot = self.slot([Value(found, None)], several=False)
                with self.em.when(self.em.let(f"xor i1 {found}, true") if stops else found):
                    self._write(slot.pointers[0], Value(self.flag(self.condition(rest)), None))
                return Value(self.em.load("i1", slot.pointers[0], 1), None)
        return found if isinstance(found, bool) else Value(found, None)

    def _Compare(self, node: ast.Compare) -> Any:
        sides = [node.left, *node.comparators]
        if len(node.ops) > 1:
            pairs = [ast.Compare(x, [op], [y]) for x, op, y in zip(sides, node.ops, sides[1:], strict=False)]
            return self.value(ast.copy_location(ast.BoolOp(ast.And(), [ast.copy_location(p, node) for p in pairs]), node))
        x, y = map(self.value, sides)
        fold, integers, floats = _COMPARISONS[type(node.ops[0])]
        if isinstance(node.ops[0], ast.Is | ast.IsNot):
            if isinstance(x, _Array) and y is None:
                return Value(self.em.let(f"icmp {integers} ptr {x.pointers[0]}, null"), None)
            return fold(x, y)
        if all(isinstance(v, int | float | type(None)) for v in (x, y)):
            return fold(x, y)
        if all(isinstance(v, bool) or (isinstance(v, Value) and v.scalar is None) for v in (x, y)):
            a, b = (self.flag(v) if isinstance(v, bool) else v.name for v in (x, y))
            return Value(self.em.let(f"icmp {integers} i1 {a}, {b}"), None)
        scalar = self.common((x, y), node)
        a, b = self.as_(x, scalar, node).name, self.as_(y, scalar, node).name
        if scalar.kind == "f":
            return Value(self.em.let(f"fcmp {floats} {scalar.ir} {a}, {b}"), None)
        sign = "" if integers in ("eq", "ne") else "s" if scalar.kind == "i" else "u"
        return Value(self.em.let(f"icmp {sign}{integers} {scalar.ir} {a}, {b}"), None)

    def _IfExp(self, node: ast.IfExp) -> Any:
        test = self.condition(node.test)
        if isinstance(test, bool):
            return self.value(node.body if test else node.orelse)
        if _is_simple(node.body) and _is_simple(node.orelse):
            return self._selected(test, self.value(node.body), self.value(node.orelse), node)
        with self.em.when(test):
            x = self.value(node.body)
            several = isinstance(x, tuple)
            slot = self.slot([self.number(v, node) for v in (x if several else (x,))], several=several)
        with self.em.otherwise():
            y = self.value(node.orelse)
            self.fill(slot, y if several else (y,), node)
        read = [Value(self.em.load(s.ir if s else "i1", p, s.bytes if s else 1), s) for p, s in zip(slot.pointers, slot.scalars, strict=True)]
        return tuple(read) if several else read[0]

    def _selected(self, test: str, x: Any, y: Any, node: ast.AST, more: str = "") -> Any:
        if isinstance(x, tuple):
            return tuple([self._selected(test, a, b, node, more) for a, b in zip(x, y, strict=True)])
        scalar = None if any(isinstance(v, Value) and v.scalar is None for v in (x, y)) else self.common((x, y), node)
        a, b = (self.as_(v, scalar, node).name for v in (x, y))
        ir = "i1" if scalar is None else scalar.ir
        return Value(self.em.let(f"select i1 {test}, {ir} {a}, {ir} {b}{more}"), scalar)

    # Calls.

    def _Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            if hasattr(owner, "emit"):
                return owner.emit(node.func.attr, self.em, [self.value(a) for a in node.args])
        function = self.value(node.func)
        args = [self.value(a) for a in node.args]
        constants: dict[str, Any] = {str(k.arg): self.value(k.value) for k in node.keywords}
        if isinstance(function, Loop):
            return self._inlined(function, args, constants, node)
        if hasattr(function, "_fields"):
            return function(*args, **constants)
        if all(isinstance(a, int | float) for a in args) and function in _BUILTINS.values():
            return function(*args)
        if function in (int, float):
            return self._converted(args[0], F64 if function is float else I64, node)
        if function in (min, max):
            found = args[0]
            for each in args[1:]:
                found = self._extreme(function is min, found, each, node)
            return found
        if function is abs:
            x = self.number(args[0], node)
            if x.scalar is not None and x.scalar.kind == "f":
                return Value(self.em.call(f"fabs.{x.scalar.overload(1)}", x.scalar.ir, (x.scalar.ir, x.name)), x.scalar)
            return Value(self.em.call("abs.i64", "i64", ("i64", self.integer(x, node)), ("i1", "true")), I64)
        if function is loops.popcount:
            return Value(self.em.call("ctpop.i64", "i64", ("i64", self.integer(args[0], node))), I64)
        if function is loops.trailing_zeros:
            return Value(self.em.call("cttz.i64", "i64", ("i64", self.integer(args[0], node)), ("i1", "true")), I64)
        if function is loops.select:
            return self._selected(self.flag(args[0]), args[1], args[2], node, ", !unpredictable !{}")
        if function is loops.prefetch:
            return self._prefetched(args[0], self.integer(args[1], node))
        self.refuse(node, "a loop calls other loops, and few functions of Python")

    def _prefetched(self, array: _Array, i: str) -> None:
        for pointer, s in zip(array.pointers, array.scalars, strict=True):
            size = array.record.itemsize if array.record else array.step or s.bytes
            self.em.prefetch(self.em.at(f"[{size} x i8]", pointer, i), write=True)

    def _extreme(self, least: bool, x: Any, y: Any, node: ast.AST) -> Value:
        scalar = self.common((x, y), node)
        a, b = self.as_(x, scalar, node).name, self.as_(y, scalar, node).name
        if scalar.kind == "f":
            better = self.em.let(f"fcmp {'olt' if least else 'ogt'} {scalar.ir} {b}, {a}")
            return Value(self.em.let(f"select i1 {better}, {scalar.ir} {b}, {scalar.ir} {a}"), scalar)
        name = ("s" if scalar.kind == "i" else "u") + ("min" if least else "max")
        return Value(self.em.call(f"{name}.i64", "i64", ("i64", a), ("i64", b)), scalar)

    def _inlined(self, function: Loop[Any, Any], args: Sequence[Any], constants: dict[str, Any], node: ast.AST) -> Any:
        outer = self.frame
        given = dict(zip(function.parameters, args, strict=True)) | constants
        missing = {a.arg for a in (*function.tree.args.args, *function.tree.args.kwonlyargs)} - given.keys()
        if missing:
            self.refuse(node, f"{function.name} needs {', '.join(sorted(missing))}")
        inner = self.frame = _Frame(function, {}, exit=self.em.fresh("exit"))
        self.body(given)
        self.em.go_on(inner.exit)
        self.frame = outer
        slot = inner.results
        if slot is None:
            return None
        read = [Value(self.em.load(s.ir if s else "i1", p, s.bytes if s else 1), s) for p, s in zip(slot.pointers, slot.scalars, strict=True)]
        return tuple(read) if slot.several else read[0]

    # Types.

    def number(self, x: Any, node: ast.AST) -> Value:
        """Return a number or a condition in a register."""
        if isinstance(x, Value):
            return x
        if isinstance(x, bool):
            return Value("true" if x else "false", None)
        if isinstance(x, int):
            return Value(str(x), I64)
        if isinstance(x, float):
            return Value(F64.literal(x), F64)
        self.refuse(node, f"{x!r} is no number")

    def as_(self, x: Any, scalar: Scalar | None, node: ast.AST) -> Value:
        """Return a number as a type; integers do not become floats, or the reverse, unless they are constants."""
        if scalar is None:
            return Value(self.flag(x), None)
        if isinstance(x, int | float) and not isinstance(x, bool):
            if isinstance(x, float) and scalar.kind != "f":
                self.refuse(node, f"{x} is no integer")
            return Value(scalar.literal(x), scalar)
        v = self.number(x, node)
        if v.scalar == scalar:
            return v
        if v.scalar is None and scalar.kind != "f":
            return Value(self.em.let(f"zext i1 {v.name} to {scalar.ir}"), scalar)
        if v.scalar is not None and v.scalar.kind != "f" and scalar.kind != "f":
            if v.scalar.bytes == scalar.bytes:
                return Value(v.name, scalar)
            op = "trunc" if scalar.bytes < v.scalar.bytes else "sext" if v.scalar.kind == "i" else "zext"
            return Value(self.em.let(f"{op} {v.scalar.ir} {v.name} to {scalar.ir}"), scalar)
        if v.scalar is not None and v.scalar.kind == "f" and scalar.kind == "f" and v.scalar.bytes < scalar.bytes:
            return Value(self.em.let(f"fpext float {v.name} to double"), scalar)
        self.refuse(node, "write float(…) or int(…) to convert a number")

    def _converted(self, x: Any, scalar: Scalar, node: ast.AST) -> Value:
        """Convert a number to int or float."""
        v = self.number(x, node)
        if v.scalar is not None and (v.scalar.kind == "f") != (scalar.kind == "f"):
            if scalar.kind == "f":
                wide = U64 if v.scalar == U64 else I64
                return Value(self.em.let(f"{'ui' if wide == U64 else 'si'}tofp i64 {self.as_(v, wide, node).name} to double"), F64)
            return Value(self.em.let(f"fptosi {v.scalar.ir} {v.name} to i64"), I64)
        if v.scalar is None and scalar.kind == "f":
            return Value(self.em.let(f"uitofp i1 {v.name} to double"), F64)
        return self.as_(v, scalar, node)

    def common(self, values: Sequence[Any], node: ast.AST) -> Scalar:
        """Return the type of an operation on numbers."""
        scalars = {v.scalar or I64 for v in values if isinstance(v, Value)}
        if any(s.kind == "f" for s in scalars):
            return F64 if any(s == F64 for s in scalars) else Scalar("f", 4)
        if any(isinstance(v, float) for v in values):
            self.refuse(node, "write float(…) to compute with an integer and a float")
        return U64 if U64 in scalars else I64

    def integer(self, x: Any, node: ast.AST) -> str:
        """Return an integer in a register, or as a literal."""
        return self.as_(x, U64 if isinstance(x, Value) and x.scalar == U64 else I64, node).name

    def condition(self, node: ast.expr) -> str | bool:
        """Return the truth of an expression: a bool if it is constant."""
        x = self.value(node)
        if not isinstance(x, Value):
            return bool(x)
        return self.flag(x)

    def flag(self, x: Any) -> str:
        """Return a condition in a register."""
        if isinstance(x, bool):
            return "true" if x else "false"
        if isinstance(x, str):
            return x
        assert isinstance(x, Value)
        if x.scalar is None:
            return x.name
        zero = x.scalar.literal(0)
        return self.em.let(f"{'fcmp une' if x.scalar.kind == 'f' else 'icmp ne'} {x.scalar.ir} {x.name}, {zero}")


def replace_context(target: ast.expr) -> ast.expr:
    """Return the expression that reads what an assignment writes."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    assert isinstance(target, ast.Subscript)
    return ast.Subscript(target.value, target.slice, ast.Load())


def _is_simple(node: ast.expr) -> bool:
    """Return True if an expression may be evaluated where Python would not: no entries, calls or quotients."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod | ast.Div):
        return False
    return not isinstance(node, ast.Subscript | ast.Call) and all(map(_is_simple, (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))))
