"""Structures passed to kernels: fields declared once, filled by Python and read by C++.

Annotations give each field's C++ type. The generated header turns the fields into macros: `Product` is ``struct Product { PRODUCT_FIELDS
};`` in C++. A kernel takes a structure whole, as words of 8 bytes (`flat`), or word by word, as parameters (`parameters`).
"""

from __future__ import annotations

import struct
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

__all__ = [
    "ALWAYS", "Bits", "Bounds", "CheckedProducts", "DeviceMatrix", "Fronts", "Given", "GradientSums", "GradientWeights",
    "LaunchPredicate", "LineExponentials", "Numbers", "Product", "Products", "Scan", "SelectK", "Sequence", "Sparse", "StridedBatch",
    "Sweeps", "Via", "Witness", "fields_header", "flat", "parameters", "word_of",
]  # fmt: skip

Word = Annotated[int, "long long"]
Int = Annotated[int, "int"]  # takes 8 bytes as a parameter
Ints = Annotated[int, "int*"]
ConstInts = Annotated[int, "const int*"]
ConstWords = Annotated[int, "const long long*"]
Words = Annotated[int, "unsigned*"]
Array = Annotated[int, "T*"]
Pointers = Annotated[tuple[int, ...], "typename S::Pointers"]  # one for each component


class DeviceMatrix(NamedTuple):
    """A matrix over a semiring: the addresses of its components, and strides in elements."""

    pointers: Pointers
    row: Word
    column: Word
    batch: Word


class LaunchPredicate(NamedTuple):
    """A condition for a launch: compute if ``*signs == value``, or always if `signs` is null."""

    signs: ConstInts
    value: Word


ALWAYS = LaunchPredicate(0, 0)
"""The predicate of unconditional launches."""


class Witness(NamedTuple):
    """Arguments of a witness: B with contiguous columns, the construction matrix with its strides, and the vertex of k = 0."""

    transposed: DeviceMatrix
    via: Ints
    row: Word
    batch: Word
    first: Word


class Product(NamedTuple):
    """One product of a launch.

    `tiles` counts the tiles of C in all parts of split-K, and `depth` the steps of a part; the parts' sums are a batch of results. `fresh`
    selects C ← A⊗B instead of C ← C ⊕ A⊗B.
    """

    A: DeviceMatrix
    B: DeviceMatrix
    C: DeviceMatrix
    m: Word
    n: Word
    k: Word
    tiles: Word
    fresh: Word
    depth: Word
    witness: Witness


class Products(NamedTuple):
    """The products of one launch."""

    product: Annotated[tuple[Product, ...], "Product<S>", "[COUNT]"]
    predicate: LaunchPredicate


class Bounds(NamedTuple):
    """Harmless numbers: least … greatest, `bottom` and `top`; `beyond` becomes 1 at any other number."""

    least: Word
    greatest: Word
    bottom: Word
    top: Word
    beyond: Ints


class CheckedProducts(NamedTuple):
    """`Products` for a kernel that checks the operands while reading them."""

    product: Annotated[tuple[Product, ...], "Product<S>", "[1]"]
    predicate: LaunchPredicate
    bounds: Bounds


class SelectK(NamedTuple):
    """A product of m × k and k × n elements: only the `kept` best entries of each row are stored, sorted.

    A thread block goes through `width` columns; each such part has its own `values` and `columns`, of m × kept entries. `total` has the
    bits of a double, the second operand of `finish`. `nan_rows` and `nan_columns` mark rows of A and columns of B with NaN, or are null.
    """

    A: DeviceMatrix
    B: DeviceMatrix
    m: Word
    n: Word
    k: Word
    kept: Word
    width: Word
    total: Word
    nan_rows: Annotated[int, "const unsigned char*"]
    nan_columns: Annotated[int, "const unsigned char*"]
    values: Annotated[int, "void*"]
    columns: Annotated[int, "long long*"]


class Sequence(NamedTuple):
    """One sequence of a scan: the addresses of the first step's matrix and weights, of the initial vector, and of v₀ and u₀."""

    matrix: Pointers
    weights: Pointers
    initial: Pointers
    values: Pointers
    added: Pointers
    witness: Ints
    states: Ints
    steps: Word


class Scan(NamedTuple):
    """A scan of sequences of one layout, with strides in elements.

    `length` is the number of terms per lane. `matrix_step`, `matrix_terms` and `matrix_sums` are the strides between steps, between terms
    of a sum, and between sums. `threshold` separates tropical integers from ∞. `rows` is the number of steps traced back at a time.
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
    added_step: Word
    added_stride: Word
    threshold: Word
    rows: Word


class Sparse(NamedTuple):
    """One `phase` of a product of compressed rows and a dense matrix; see ``sparse.cuh``.

    The dense matrix has `depth` contiguous rows, `right_row` elements apart. `strange` becomes 1 for invalid row starts or a column ≥
    `depth`; C then holds no product. `fresh` selects C ← A⊗B. `via` may be null.

    `cuts` holds the first row and entry of each of the `tiles`, and their ends. `parts` holds two sums per tile and column, for cut rows;
    `closed` marks tiles that contain the end of a cut row. A tile has `items` rows and entries, and rows of at most `longest` entries stay
    whole.
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


class Sweeps(NamedTuple):
    """Sweeps through the panels of an elimination; the arrays up to `panel_starts`, and the panels, are laid out as in `Supernodes`.

    `parents` has each supernode's parent, `supernode_of` the supernode of each place, and `down` the supernodes of the second sweep, in
    descending order. `starts` has the places of the sources, ascending; `rows_of` their rows of `out`, `stride` elements apart, with one
    column for each place in `ends`. Per block, `x` has memory for its vectors, `own` for the widest supernode's, and `marks` for numbers of
    supernodes.
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
    """Fronts of a sparse elimination; the arrays up to `entry_columns`, and the panels, are laid out as in `Supernodes`.

    `fronts` holds each front by rows, from `front_starts` on. `parents` has each supernode's parent, `targets` the position of each of
    `rows` in the parent's front, and `entries` the numbers of the edges. `list` names the `listed` fronts of a launch; `starts` has the
    first block of each, where the first block overall has number `base`; `step` counts pivot blocks. `divergent` has one number per pivot
    block, and `threshold` separates tropical integers from ∞.
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
    """The construction matrix of a pivot block, or null, and the vertex of the block's first row."""

    data: Ints
    row: Word
    batch: Word
    first: Int


class StridedBatch(NamedTuple):
    """A batch of matrices of numbers, vertices or truth values, with strides in elements."""

    data: Array
    row: Word
    column: Word
    batch: Word


class GradientSums(NamedTuple):
    """Gradients of values with their witness, and both operands of the product: sums by the witness become the gradient of one operand.

    Rows are lines; columns are the entries of a line, or the depth of the product. `other` has a row for each entry. `span` sums of a line
    are added up together.
    """

    gradients: Annotated[StridedBatch, "StridedBatch<T>"]
    witness: Annotated[StridedBatch, "StridedBatch<int>"]
    own: Annotated[StridedBatch, "StridedBatch<T>"]
    other: Annotated[StridedBatch, "StridedBatch<T>"]
    sums: Annotated[StridedBatch, "StridedBatch<T>"]
    lines: Word
    entries: Word
    depth: Word
    span: Word


class LineExponentials(NamedTuple):
    """Matrices and their exponentials, whose rows are lines; `scale` has the bits of a double, and `largest` has a number for each line."""

    source: Annotated[StridedBatch, "StridedBatch<T>"]
    to: Annotated[StridedBatch, "StridedBatch<T>"]
    largest: Array
    lines: Word
    entries: Word
    scale: Word


class GradientWeights(NamedTuple):
    """Gradients and values of a product of m × n, which become contiguous weights; `rows` and `columns` have the largest exponents."""

    gradients: Annotated[StridedBatch, "StridedBatch<T>"]
    values: Annotated[StridedBatch, "StridedBatch<T>"]
    rows: Array
    columns: Array
    weights: Array
    results: Array
    batch: Word
    m: Word
    n: Word
    scale: Word


class Bits(NamedTuple):
    """A batch of matrices of bits, with strides in words."""

    words: Words
    row: Word
    batch: Word


class Numbers(NamedTuple):
    """An array for value statistics: `size` contiguous numbers if n = 0, else strided m × n matrices, with strides in elements."""

    start: Annotated[int, "const T*"]
    size: Word
    m: Word = 0
    n: Word = 0
    apart: Word = 0
    row: Word = 0
    column: Word = 0


class Given(NamedTuple):
    """The arguments of a launch of value statistics.

    Blocks combine results in `partials` and count themselves in `blocks`, both 0 between launches. The last block writes `results` to host
    memory, then `number` to `finished`. `signs` becomes 1 if a number is negative (−∞ and NaN aside) or −0.0. `results` and `finished`, and
    `signs`, may be null.
    """

    arrays: Annotated[tuple[Numbers, ...], "Numbers<T>", "[COUNT]"]
    partials: Annotated[int, "Partial*"]
    blocks: Words
    results: Annotated[int, "Result*"]
    finished: Annotated[int, "volatile unsigned long long*"]
    number: Annotated[int, "unsigned long long"]
    signs: Ints


_STRUCTURES = [found for found in tuple(globals().values()) if isinstance(found, type) and hasattr(found, "_fields")]
_TEMPLATES = {DeviceMatrix: "DeviceMatrix<S>", Witness: "Witness<S>"}  # C++ names of structures that are templates


def _declared(field: str, hint: Any) -> str:
    if get_origin(hint) is Annotated:
        _, kind, *length = get_args(hint)
        return f"{kind} {field}{''.join(length)};"
    return f"{_TEMPLATES.get(hint, hint.__name__)} {field};"


def fields_header() -> str:
    """Return the header ``arguments.cuh``: the fields of each structure as macros."""
    lines = ["// The fields of the structures of arguments.py.", "#pragma once", ""]
    for structure in _STRUCTURES:
        fields = " ".join(_declared(field, hint) for field, hint in get_type_hints(structure, include_extras=True).items())
        lines.append(f"#define {structure.__name__.upper()}_FIELDS {fields}")
    return "\n".join(lines) + "\n"


def flat(structure: tuple[Any, ...]) -> list[int]:
    """Return the words of a structure, in order."""
    words: list[int] = []
    for field in structure:
        if isinstance(field, tuple):
            words += flat(field)
        else:
            words.append(field)
    return words


def word_of(number: float) -> int:
    """Return the bits of a double as a word."""
    (word,) = struct.unpack("=q", struct.pack("=d", number))
    return int(word)


def parameters(structure: type[Any], name: str, *, components: tuple[str, ...] = (), template: str = "") -> tuple[str, str]:
    """Return the parameters of a kernel that takes a structure word by word, and the C++ expression that assembles the structure.

    `name` prefixes the parameters; `components` are the types of a matrix's components, and `template` is the argument of a template.
    """
    taken, given = [], []
    for field, hint in get_type_hints(structure, include_extras=True).items():
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
