"""A priority queue in arrays, for compiled loops: a heap with four children per entry, whose first entry comes before all others.

An entry is a vertex and a key, an element of any number of components. ``before(x, y)`` tells if key x comes before key y. The four keys of
an entry's children fill less than a cache line.

>>> import numpy as np
>>> from semiring.kernels.cpu.loops import Element, loop
>>> @loop
... def smaller(x: Element, y: Element) -> bool:
...     return x[0] < y[0]
>>> vertices, keys, size = np.empty(3, np.int64), (np.empty(3),), 0
>>> for vertex, key in enumerate((0.5, 0.25, 0.75)):
...     size = push(vertices, keys, size, vertex, (key,), before=smaller)
>>> vertices.tolist()
[1, 0, 2]
"""

from __future__ import annotations

from typing import Any

from semiring.kernels.cpu.loops import Element, Elements, Ints, Loop, loop, select

__all__ = ["pop", "push"]


@loop
def push(vertices: Ints, keys: Elements, size: int, vertex: int, key: Element, *, before: Loop[Any, bool]) -> int:
    """Add an entry to a heap of some size; return the new size."""
    place = size
    while place > 0 and before(key, keys[(place - 1) // 4]):
        above = (place - 1) // 4
        vertices[place] = vertices[above]
        keys[place] = keys[above]
        place = above
    vertices[place] = vertex
    keys[place] = key
    return size + 1


@loop
def pop(vertices: Ints, keys: Elements, size: int, *, before: Loop[Any, bool]) -> int:
    """Remove the first entry, vertices[0] and keys[0], from a heap that is not empty; return the new size."""
    last = size - 1
    vertex, key = vertices[last], keys[last]
    place = 0
    while True:
        # Places beyond the end are those of the last entry, which is still there and comes before nothing below it.
        one, two = min(4 * place + 1, last), min(4 * place + 2, last)
        three, four = min(4 * place + 3, last), min(4 * place + 4, last)
        # A knockout of the children: two dependent comparisons instead of three.
        better, other = before(keys[two], keys[one]), before(keys[four], keys[three])
        left, right = select(better, two, one), select(other, four, three)
        first, second = select(better, keys[two], keys[one]), select(other, keys[four], keys[three])
        better = before(second, first)
        child, best = select(better, right, left), select(better, second, first)
        if child <= place or not before(best, key):  # at a leaf the best child is the entry itself
            break
        vertices[place] = vertices[child]
        keys[place] = best
        place = child
    vertices[place] = vertex
    keys[place] = key
    return last
