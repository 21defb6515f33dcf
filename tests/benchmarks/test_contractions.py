"""Energies, configurations and numbers of ground states of small spin glasses, against all states."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import semiring as sr
from benchmarks.contractions import CELL, LARGEST, SPINS, Chimera, Rows, counted, lattice


def by_all_states(size: int, bonds: list[tuple[int, int, float]]) -> tuple[float, int]:
    """The largest sum of J s t over the bonds, and how many states of ±1 have it."""
    states = 1 - 2 * (np.arange(2**size)[:, None] >> np.arange(size) & 1)
    sums = np.sum([J * states[:, a] * states[:, b] for a, b, J in bonds], axis=0)
    return float(sums.max()), int((sums == sums.max()).sum())


def found_by(glass: Chimera, limit: str | None) -> tuple[float, float, tuple[float, float]]:
    """Energy and number by rows, and the check of a configuration."""
    plain = Rows(glass, sr.MAX_PLUS, lambda v: v, limit)
    energy, number = Rows(glass, LARGEST, lambda v: counted(v, "float64"), limit).total()
    assert energy == plain.total()
    return float(energy), float(number), plain.configuration()


def test_the_counting_semiring_has_its_laws() -> None:
    checked = sr.check(LARGEST, ("float32", "float64"))
    assert all(checked[law].status == "passed" for law in ("associative ⊕", "associative ⊗", "left distributive", "right distributive"))


@pytest.mark.parametrize("side", [2, 3, 4])
def test_lattices(side: int) -> None:
    edges = lattice(side)
    couplings = np.random.default_rng(side).choice([-1.0, 1.0], len(edges))
    arrays = [J * np.outer(SPINS, SPINS) for J in couplings]
    subscripts = ",".join(chr(256 + a) + chr(256 + b) for a, b in edges) + "->"
    found = sr.einsum(subscripts, *[counted(v, "float64") for v in arrays], semiring=LARGEST, optimize=False)
    assert found == by_all_states(side * side, [(a, b, J) for (a, b), J in zip(edges, couplings, strict=True)])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limit", [None, "2 KiB"])
def test_one_row_of_chimera_cells_against_all_states(seed: int, limit: str | None) -> None:
    glass = Chimera(1, 2, np.random.default_rng(seed))
    bonds = list[tuple[int, int, float]]()  # spin k of a half: 8·column + 4·side + k
    for j, k, other in itertools.product(range(2), range(4), range(4)):
        # Both spins alone down: flips of either, and of both, tell the coupling from the sum of all.
        v, h = 1 << k, 1 << other
        cell = glass.cells[0, j]
        bonds.append((8 * j + k, 8 * j + 4 + other, float(cell[0, 0] - cell[v, 0] - cell[0, h] + cell[v, h]) / 4))
    for k in range(4):
        across = glass.across[0, 0]
        bonds.append((4 + k, 12 + k, float(across[0, 0] - across[1 << k, 0]) / 2))
    energy, number, (largest, reached) = found_by(glass, limit)
    assert (energy, number) == by_all_states(16, bonds)
    assert energy == largest == reached


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 2), (2, 3)])
def test_rows_of_chimera_cells_against_the_whole_network(rows: int, columns: int) -> None:
    glass = Chimera(rows, columns, np.random.default_rng(rows))
    subscripts, arrays = glass.network()
    energy, number = sr.einsum(subscripts, *[counted(v, "float64") for v in arrays], semiring=LARGEST)
    assert found_by(glass, "64 KiB") == (energy, number, (energy, energy))
    assert len(arrays) == rows * columns + (rows - 1) * columns + rows * (columns - 1)
    assert CELL.shape == (16, 4)


def test_large_numbers_in_floats() -> None:
    """All terms are positive: the relative error is at most ε times the operations one after the other."""
    count = 400
    loose: Any = counted(np.zeros((3, 3), np.float32), "float64")
    chain = [x for i in range(count) for x in (loose, [i, i + 1])]
    _, number = sr.einsum(*chain, [], semiring=LARGEST, optimize=False)
    assert abs(Fraction(float(number)) / 3 ** (count + 1) - 1) <= 4 * count * np.finfo(float).eps
