"""`Neighbours`: the k best entries of each row of a matrix that is not stored."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Neighbours"]


class Neighbours(NamedTuple):
    """The k best entries of each row, in order, and their columns; `pairwise`, `apsp` and `closure` return this pair with ``k=``.

    Examples
    --------
    >>> import semiring as sr
    >>> sr.pairwise([[0.0], [5.0]], [[4.0], [1.0], [2.0]], "l1", k=2)
    Neighbours(values=array([[1., 2.],
           [1., 3.]]), indices=array([[1, 2],
           [0, 2]]))

    Attributes
    ----------
    values : array of shape (m, k), or tuple of arrays
        A tuple for structured elements. Where a vertex reaches fewer than k others, the rest is the semiring's zero.
    indices : int64 array of shape (m, k)
        Columns, which are rows of y, vertices, or places in `targets`; of equal entries, the lowest first. −1 stands for none.
    """

    values: Any
    indices: Any
