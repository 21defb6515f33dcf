"""Contractions of several arrays: NumPy's grammar of subscripts, and the order in which pairs are contracted.

A contraction is ⊕ over the summed indices of the ⊗ of one element of each operand. ⊗ distributes over ⊕, so pairs of operands can be
contracted one after the other. An index is summed as soon as no other operand has the index:

>>> contraction = parsed("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)])
>>> contraction.inputs
(('i', 'j'), ('j', 'k'), ('k', 'l'))
>>> list(steps(contraction, [(1, 2), (0, 1)]))
[(1, 2, ('j', 'l')), (0, 3, ('i', 'l'))]

The axes of an ellipsis are indices too, numbered from the last one; axes of length 1 repeat.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from semiring.common.errors import SemiringError, ShapeError, listing
from semiring.common.units import counted

__all__ = ["Contraction", "Indices", "as_letters", "from_lists", "left_to_right", "parsed", "steps"]

Indices = tuple[str, ...]
"""The names of some indices: letters, and "...1", "...2" and so on for the axes of an ellipsis."""

_ELLIPSIS = "..."


class Contraction(NamedTuple):
    """The indices of each operand and of the result, and the length of each index."""

    inputs: tuple[Indices, ...]
    output: Indices
    lengths: dict[str, int]

    def shape(self, indices: Sequence[str]) -> tuple[int, ...]:
        """Return the lengths of some indices."""
        return tuple([self.lengths[i] for i in indices])


def parsed(subscripts: str, shapes: Sequence[tuple[int, ...]]) -> Contraction:
    """Return the contraction of operands of these shapes; raise SemiringError or ShapeError for subscripts that do not fit."""
    pattern = subscripts.replace(" ", "")
    given, arrow, result = pattern.partition("->")
    terms = given.split(",")
    if bad := sorted({x for x in pattern.replace("->", "").replace(_ELLIPSIS, "").replace(",", "") if x.isascii() and not x.isalpha()}):
        raise SemiringError(f"the subscripts {subscripts!r} have {listing(bad)}; indices are letters, such as in 'ij,jk->ik'")
    if len(terms) != len(shapes):
        raise SemiringError(
            f"the subscripts {subscripts!r} describe {counted(len(terms), 'operand')}, but {counted(len(shapes), 'array')} "
            f"{'is' if len(shapes) == 1 else 'are'} passed"
        )
    inputs = tuple([_indices(term, shape, number, subscripts) for number, (term, shape) in enumerate(zip(terms, shapes, strict=True))])
    lengths = _lengths(inputs, shapes, subscripts)
    free = sorted({i for indices in inputs for i in indices if i.startswith(_ELLIPSIS)}, key=lambda i: -int(i[3:]))
    if arrow:
        letters = result.replace(_ELLIPSIS, "\0")
        output = tuple(i for x in letters for i in (free if x == "\0" else [x]))
        if free and _ELLIPSIS not in result:
            raise SemiringError(f"the subscripts {subscripts!r}: the axes of '...' are not summed, so the result needs '...' too")
    else:
        counts = Counter(x for term in terms for x in term.replace(_ELLIPSIS, ""))
        output = (*free, *sorted(x for x, count in counts.items() if count == 1))
    for index in output:
        if index not in lengths:
            raise SemiringError(f"the subscripts {subscripts!r}: the result has index {index!r}, which no operand has")
        if output.count(index) > 1:
            raise SemiringError(f"the subscripts {subscripts!r}: the result has index {index!r} more than once")
    return Contraction(inputs, output, lengths)


def _indices(term: str, shape: tuple[int, ...], number: int, subscripts: str) -> Indices:
    before, ellipsis, after = term.partition(_ELLIPSIS)
    more = len(shape) - len(before) - len(after)
    if _ELLIPSIS in after or more < 0 or (more and not ellipsis):
        named = f"{len(before) + len(after)}{' or more' if ellipsis else ''}"
        raise ShapeError(f"the subscripts {subscripts!r} name {named} axes of operand {number}, {term!r}; its shape is {shape}")
    return (*before, *(f"{_ELLIPSIS}{axis}" for axis in range(more, 0, -1)), *after)


def _lengths(inputs: Sequence[Indices], shapes: Sequence[tuple[int, ...]], subscripts: str) -> dict[str, int]:
    found: dict[str, tuple[int, int]] = {}  # the length of each index, and an operand with this length
    for number, (indices, shape) in enumerate(zip(inputs, shapes, strict=True)):
        for index, length in zip(indices, shape, strict=True):
            known, other = found.get(index, (1, number))
            if known not in (1, length) and length != 1:
                name = "an axis of '...'" if index.startswith(_ELLIPSIS) else f"index {index!r}"
                raise ShapeError(
                    f"the subscripts {subscripts!r}: {name} has length {known} in operand {other} of shape {shapes[other]}, "
                    f"and {length} in operand {number} of shape {shape}"
                )
            if known == 1:
                found[index] = length, number
    return {index: length for index, (length, _) in found.items()}


def from_lists(given: Sequence[Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """Return subscripts and operands of the alternative form: an operand, the list of its indices, and so on; the result's list last.

    The third part has the caller's name of each letter.

    >>> from_lists(["a", [0, 1], "b", [1, 2], [0, 2]])
    ('AB,BC->AC', ['a', 'b'], {'A': 0, 'B': 1, 'C': 2})
    """
    operands, lists = list(given[0 : len(given) - 1 : 2]), list(given[1::2])
    result = [given[-1]] if len(given) % 2 else []
    for some in [*lists, *result]:
        if not isinstance(some, list | tuple):
            raise SemiringError(f"einsum takes subscripts such as 'ij,jk->ik', or a list of indices after each operand; not {some!r}")
    names: set[Hashable] = {i for some in [*lists, *result] for i in some if i is not Ellipsis}
    symbols: dict[Any, str] = {name: _symbol(number) for number, name in enumerate(sorted(names, key=lambda i: (str(type(i)), i)))}
    symbols[Ellipsis] = _ELLIPSIS
    terms = ["".join([symbols[i] for i in some]) for some in [*lists, *result]]
    subscripts = ",".join(terms[: len(lists)]) + "".join(f"->{term}" for term in terms[len(lists) :])
    return subscripts, operands, {symbol: name for name, symbol in symbols.items() if name is not Ellipsis}


def _symbol(number: int) -> str:
    """Return a letter: A … Z, a … z, and then other letters, in ascending order."""
    return chr((65 if number < 26 else 71 if number < 52 else 19968 - 52) + number)


def as_letters(contraction: Contraction) -> tuple[str, dict[str, str]]:
    """Return subscripts without an ellipsis, as other libraries read them, and the letter of each index.

    Letters are kept; the axes of an ellipsis get letters that are free.
    """
    free = (letter for letter in map(_symbol, itertools.count()) if letter not in contraction.lengths)
    letters = {index: index if len(index) == 1 else next(free) for index in contraction.lengths}
    *terms, output = ("".join([letters[i] for i in indices]) for indices in (*contraction.inputs, contraction.output))
    return f"{','.join(terms)}->{output}", letters


def left_to_right(count: int) -> list[tuple[int, ...]]:
    """Return the order that contracts the first two operands, then the result and the third, and so on.

    Each step lists the places of two operands; both are removed, and the result comes last.

    >>> left_to_right(4)
    [(0, 1), (0, 2), (0, 1)]
    """
    return [(0, 1) if left == count - 1 else (0, left) for left in range(count - 1, 0, -1)]


def steps(contraction: Contraction, path: Sequence[Sequence[int]]) -> Iterator[tuple[int, int, Indices]]:
    """Yield the two operands of each contraction, and the indices of its result, which becomes the operand with the next number.

    `path` has steps as `left_to_right` returns them. The first operand of a pair is the one with the earliest of the caller's operands.
    """
    held = list(enumerate(contraction.inputs))
    order = {number: number for number, _ in held}
    for places in path:
        if len(set(places)) < len(places) or not all(0 <= place < len(held) for place in places):
            raise SemiringError(f"the order {list(map(tuple, path))} has the step {tuple(places)} among {counted(len(held), 'operand')}")
        chosen = [held[place] for place in places]
        held = [each for place, each in enumerate(held) if place not in places]
        chosen.sort(key=lambda each: order[each[0]])
        result = chosen[0]
        for position, other in enumerate(chosen[1:], start=2):
            rest = {i for _, indices in (*held, *chosen[position:]) for i in indices}
            kept = tuple(dict.fromkeys(i for i in (*result[1], *other[1]) if i in rest or i in contraction.output))
            number = len(order)
            yield result[0], other[0], kept
            order[number] = order[result[0]]
            result = number, kept
        held.append(result)
    if len(held) != 1:
        raise SemiringError(f"the order {list(map(tuple, path))} leaves {counted(len(held), 'operand')} instead of one")
