"""The structures among the arguments of kernels: their fields, written once, for Python that fills them and for the C++ that reads them.

Each is a `NamedTuple` whose annotations say what C++ has in a word. The headers get the fields as macros: `Product` here is ``struct
Product { PRODUCT_FIELDS };`` there, where it may have methods besides. A kernel takes such a structure whole, from memory, where every
field is a word of 8 bytes (`flat`, `places`); or word by word, as so many parameters, from which it puts the structure together
(`parameters`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

__all__ = [
    "ALWAYS", "Bits", "Bounds", "CheckedProducts", "Fronts", "Given", "Matrix", "Numbers", "Predicate", "Product", "Products", "Scan",
    "Sequence", "Sparse", "Strided", "Sweep", "Truths", "Vertices", "Via", "Witness", "fields_header", "flat", "parameters", "places",
]  # fmt: skip

Word = Annotated[int, "long long"]
Int = Annotated[int, "int"]  # a parameter of 8 bytes all the same
Ints = Annotated[int, "int*"]
ConstInts = Annotated[int, "const int*"]
ConstWords = Annotated[int, "const long long*"]
Words = Annotated[int, "unsigned*"]
Bytes = Annotated[int, "unsigned char*"]
Array = Annotated[int, "T*"]
Pointers = Annotated[tuple[int, ...], "typename S::Pointers"]  # one for each component


class Matrix(NamedTuple):
    """A matrix over a semiring: the addresses of its components, and strides in elements."""

    pointers: Pointers
    row: Word
    column: Word
    batch: Word


class Predicate(NamedTuple):
    """Whether a launch computes, of two of which the numbers decide which one does: always, or if what `signs` points to is `value`."""

    signs: ConstInts
    value: Word


ALWAYS = Predicate(0, 0)
"""Of launches that compute whatever the numbers are."""


class Witness(NamedTuple):
    """B with its columns contiguous, the construction matrix with its strides, and the vertex that k = 0 stands for."""

    transposed: Matrix
    via: Ints
    row: Word
    batch: Word
    first: Word


class Product(NamedTuple):
    """One product of a launch.

    `tiles` are those of C, once for each part of split-K; `depth` is the steps of a part, whose sums are a batch of results; `fresh`
    makes it C ← A⊗B.
    """

    A: Matrix
    B: Matrix
    C: Matrix
    m: Word
    n: Word
    k: Word
    tiles: Word
    fresh: Word
    depth: Word
    witness: Witness


class Products(NamedTuple):
    """What one launch computes."""

    product: Annotated[tuple[Product, ...], "Product<S>", "[COUNT]"]
    predicate: Predicate


class Bounds(NamedTuple):
    """Numbers that need no closer look: those from a least to a greatest one, and two beside them; and what becomes 1 at any other."""

    least: Word
    greatest: Word
    bottom: Word
    top: Word
    beyond: Ints


class CheckedProducts(NamedTuple):
    """`Products` of which the operands are checked while they are read."""

    product: Annotated[tuple[Product, ...], "Product<S>", "[1]"]
    predicate: Predicate
    bounds: Bounds


class Sequence(NamedTuple):
    """One sequence of a scan: where the matrix and the weights of its first step are, its initial vector, and v₀ of the result."""

    matrix: Pointers
    weights: Pointers
    initial: Pointers
    values: Pointers
    witness: Ints
    states: Ints
    steps: Word


class Scan(NamedTuple):
    """A scan of sequences that lie alike, with strides in elements.

    `length` is the terms of a sum that a lane has; the strides of a matrix are those from step to step, from term to term of a sum, and
    from sum to sum; `threshold` tells tropical integers from ∞; `rows` is the steps that are followed back at a time.
    """

    sequences: Annotated[int, "const Sequence<S>*"]
    states: Word
    length: Word
    matrix_step: Word
    matrix_terms: Word
    matrix_sums: Word
    weight_step: Word
    weight_stride: Word
    initial_stride: Word
    value_step: Word
    threshold: Word
    rows: Word


class Sparse(NamedTuple):
    """A product of compressed rows and a dense matrix, of which a launch computes a `phase`: see ``sparse.cuh``.

    The rows of the dense matrix, of which there are `depth`, lie `right_row` elements apart, and its columns side by side. `strange`
    becomes 1 for an entry in a column that is not below `depth`, and for rows that are none; C then holds no product. `fresh` makes it
    C ← A⊗B. `via` may be null.

    `cuts` has for each of the `tiles`, and behind the last, its first row and entry; `parts` the sums of rows that are cut, two for each
    tile and column, and `closed` whether a tile has the end of such a row. A tile is some `items`, rows and entries together, and no row
    of at most `longest` entries is cut.
    """

    starts: Annotated[int, "const void*"]
    columns: Annotated[int, "const void*"]
    values: Pointers
    right: Pointers
    out: Pointers
    via: Ints
    strange: Ints
    cuts: Annotated[int, "long long*"]
    closed: Ints
    parts: Annotated[int, "void*"]
    m: Word
    n: Word
    depth: Word
    entries: Word
    right_row: Word
    threshold: Word
    fresh: Word
    tiles: Word
    items: Word
    longest: Word
    phase: Word
    bounds: Bounds


class Sweep(NamedTuple):
    """Sweeps through the panels of an elimination; the arrays up to `panel_starts`, and the panels, are those of the CPU's `Supernodes`.

    `parents` has the supernode above each one, `supernode_of` that of each place, and `down` the supernodes of the second sweep, in
    descending order. `starts` has the places of the sources, in ascending order, and `rows_of` the rows of `out` that they go to, which
    lie `stride` elements apart, with a column for each of the places `ends`. Each block has memory in `x` for its vectors, in `own` for
    those of the widest supernode, and in `marks` for the numbers of all.
    """

    columns: ConstInts
    row_starts: ConstWords
    rows: ConstInts
    panel_starts: ConstWords
    parents: ConstInts
    supernode_of: ConstInts
    supernodes: Word
    n: Word
    widest: Word
    down: ConstInts
    downs: Word
    starts: ConstInts
    rows_of: ConstInts
    sources: Word
    ends: ConstInts
    targets: Word
    stride: Word
    threshold: Word
    upper: Pointers
    lower: Pointers
    x: Pointers
    own: Pointers
    marks: Ints
    out: Pointers


class Fronts(NamedTuple):
    """Fronts of a sparse elimination; the arrays up to `entry_columns`, and the panels, are those of the CPU's `Supernodes`.

    Each front lies by rows in `fronts`, from `front_starts` on. `parents` has the supernode above each one, `targets` where each of `rows`
    is in that one's front, and `entries` the numbers of the edges. `list` has the `listed` fronts of a launch, and `starts` the block with
    which each begins, where the first one's number is `base`; `step` counts pivot blocks. `divergent` has a number for each block that
    closes one, and `threshold` tells tropical integers from ∞.
    """

    columns: ConstInts
    row_starts: ConstWords
    rows: ConstInts
    panel_starts: ConstWords
    child_starts: ConstInts
    children: ConstInts
    entry_starts: ConstInts
    entry_rows: ConstInts
    entry_columns: ConstInts
    entries: ConstInts
    parents: ConstInts
    supernodes: Word
    front_starts: ConstWords
    targets: Ints
    weights: Pointers
    fronts: Pointers
    upper: Pointers
    lower: Pointers
    divergent: Ints
    threshold: Word
    list: ConstInts
    starts: ConstWords
    listed: Word
    base: Word
    step: Word


class Via(NamedTuple):
    """The construction matrix of a pivot block, or none, and the vertex that the block's first row stands for."""

    data: Ints
    row: Word
    batch: Word
    first: Int


class Vertices(NamedTuple):
    """A batch of matrices of vertices."""

    data: Ints
    row: Word
    column: Word
    batch: Word


class Strided(NamedTuple):
    """A batch of matrices of numbers, with strides in numbers."""

    data: Array
    row: Word
    column: Word
    batch: Word


class Bits(NamedTuple):
    """A batch of matrices of bits, with strides in words."""

    words: Words
    row: Word
    batch: Word


class Truths(NamedTuple):
    """A batch of matrices of truth values, of a byte each, with strides in bytes."""

    bytes: Bytes
    row: Word
    column: Word
    batch: Word


class Numbers(NamedTuple):
    """An array for value statistics: `size` numbers side by side if n is 0, else matrices of m × n, whose strides are in elements."""

    start: Annotated[int, "const T*"]
    size: Word
    m: Word = 0
    n: Word = 0
    apart: Word = 0
    row: Word = 0
    column: Word = 0


class Given(NamedTuple):
    """What one launch of value statistics takes.

    Arrays; where blocks combine their partial results and count themselves, all 0 between launches; memory of the host, where the last
    block writes the results and then that this is the launch with a number; and what becomes 1 if a number that is neither −∞ nor NaN is
    negative, or is −0.0. Of the last two each may be null.
    """

    arrays: Annotated[tuple[Numbers, ...], "Numbers<T>", "[COUNT]"]
    partials: Annotated[int, "Partial*"]
    blocks: Words
    results: Annotated[int, "Result*"]
    finished: Annotated[int, "volatile unsigned long long*"]
    number: Annotated[int, "unsigned long long"]
    signs: Ints


_STRUCTURES: tuple[type[Any], ...] = (
    Matrix, Predicate, Witness, Product, Products, Bounds, CheckedProducts, Sequence, Scan, Sparse, Sweep, Fronts, Via, Vertices, Strided,
    Bits, Truths, Numbers, Given,
)  # fmt: skip
"""Of which the header has the fields."""

_TEMPLATES = {Matrix: "Matrix<S>", Witness: "Witness<S>"}
"""C++'s names of those fields that are structures and templates."""


def _hints(structure: type[Any]) -> Mapping[str, Any]:
    """The annotations of its fields."""
    return get_type_hints(structure, include_extras=True)


def _declared(field: str, hint: Any) -> str:
    """A field as C++ declares it."""
    if get_origin(hint) is Annotated:
        _, kind, *length = get_args(hint)
        return f"{kind} {field}{''.join(length)};"
    return f"{_TEMPLATES.get(hint, hint.__name__)} {field};"


def fields_header() -> str:
    """The header ``arguments.cuh``: the fields of each structure."""
    lines = ["// The fields of the structures of arguments.py.", "#pragma once", ""]
    for structure in _STRUCTURES:
        fields = " ".join(_declared(field, hint) for field, hint in _hints(structure).items())
        lines.append(f"#define {structure.__name__.upper()}_FIELDS {fields}")
    return "\n".join(lines) + "\n"


def flat(structure: tuple[Any, ...]) -> list[int]:
    """The words of a structure."""
    words: list[int] = []
    for field in structure:
        if isinstance(field, tuple):
            words += flat(field)
        else:
            words.append(field)
    return words


def places(structure: type[Any], components: int) -> dict[str, int]:
    """The place of each word in a structure, by names such as ``A.row`` and ``A.pointers.0``."""
    return {name: i for i, name in enumerate(_names(structure, components))}


def _names(structure: type[Any], components: int) -> list[str]:
    """The names of the words of a structure, in order."""
    names: list[str] = []
    for field, hint in _hints(structure).items():
        if hint == Pointers:
            names += [f"{field}.{c}" for c in range(components)]
        elif get_origin(hint) is Annotated:
            names.append(field)
        else:
            names += [f"{field}.{name}" for name in _names(hint, components)]
    return names


def parameters(structure: type[Any], name: str, *, components: tuple[str, ...] = (), template: str = "") -> tuple[str, str]:
    """The parameters of a kernel that takes a structure word by word, and the C++ expression of the structure.

    Their names begin with `name`; `components` are the types of a `Matrix`'s components, and `template` is the argument of a template.
    """
    taken, given = [], []
    for field, hint in _hints(structure).items():
        _, kind = get_args(hint)
        own = f"{name}_{field}"
        if hint == Pointers:
            taken += [f"{component}* {own}{c}" for c, component in enumerate(components)]
            given.append(f"{{{', '.join(f'{own}{c}' for c in range(len(components)))}}}")
        elif kind == "int":
            taken.append(f"long long {own}")
            given.append(f"int({own})")
        else:
            taken.append(f"{kind.replace('T*', f'{template}*')} {own}")
            given.append(own)
    kind = f"{structure.__name__}<{template}>" if template else structure.__name__
    return ", ".join(taken), f"{kind}{{{', '.join(given)}}}"
