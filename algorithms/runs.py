"""Runs of equal keys, combined into one entry each, and runs of consecutive numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["combine_runs", "consecutive"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


def combine_runs(keys: Array, entries: Values, combine: Callable[[Values, Values], Values]) -> tuple[Array, Values]:
    """Each key of a sorted array once, and what its entries combine to: neighbours pairwise, so that a run of k takes log k rounds.

    Parameters
    ----------
    keys : sorted array
    entries : tuple of arrays, as long as the keys
    combine : callable
        Of two entries, each a tuple of arrays, the first of which came earlier.
    """
    while (again := np.append(keys[1:] == keys[:-1], False)).any():
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        rank = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
        left = np.flatnonzero(again & (rank % 2 == 0))
        pairs = combine(tuple(e[left] for e in entries), tuple(e[left + 1] for e in entries))
        keep = np.ones(len(keys), dtype=bool)
        keep[left + 1] = False
        entries = tuple(_with(e, left, pair)[keep] for e, pair in zip(entries, pairs, strict=True))
        keys = keys[keep]
    return keys, entries


def _with(array: Array, where: Array, new: Array) -> Array:
    copy = array.copy()
    copy[where] = new
    return copy


def consecutive(first: Array, size: Array) -> tuple[Array, Array]:
    """Several runs of so many consecutive numbers, one after the other: for each number the position of its run, and the number."""
    position = np.repeat(np.arange(len(first)), size)
    return position, np.arange(len(position)) + (first - (np.cumsum(size) - size))[position]
