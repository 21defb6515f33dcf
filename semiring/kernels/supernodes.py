"""Supernodes and panels of a sparse elimination, as the CPU and the GPU take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Array", "EliminationPanels", "Supernodes", "Values"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


class Supernodes(NamedTuple):
    """The supernodes of an elimination in postorder, in int64 arrays. A place is a position in the order of elimination.

    Attributes
    ----------
    columns : array of shape (s + 1,)
        The first place of each of s supernodes.
    row_starts, rows : arrays
        The later places adjacent to each supernode, ascending.
    panel_starts : array of shape (s + 1,)
        The first entry of each supernode in either panel: a panel has as many entries as vertices times the side of the front.
    child_starts, children : arrays
        The children of each supernode, ascending.
    entry_starts, entry_rows, entry_columns : arrays
        Edges between each supernode and itself or later ones: the places of both ends.
    """

    columns: Array
    row_starts: Array
    rows: Array
    panel_starts: Array
    child_starts: Array
    children: Array
    entry_starts: Array
    entry_rows: Array
    entry_columns: Array


class EliminationPanels(NamedTuple):
    """The panels of all supernodes in order, one array per component: `upper` has D* [I U], and `lower` has [I; L] D*."""

    upper: Values
    lower: Values
