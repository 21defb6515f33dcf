"""The plan of a contraction: the order of its products, the sliced indices, steps and memory.

A sliced index takes one value at a time: the contraction of each slice needs less memory, and the results are added by ⊕. The choice of
indices is greedy: at the step with the most memory, the index with the least steps × memory afterwards, until the limit is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from semiring.algorithms.contraction import Contraction, Indices, as_letters, steps
from semiring.common.errors import SemiringError, TooLargeError
from semiring.common.forks import cached_property
from semiring.common.html import Shown
from semiring.common.units import counted, format_bytes

__all__ = ["ContractionPlan", "witness_bytes"]

_SHOWN = 20
"""Products that a plan prints."""


def witness_bytes(values: int) -> int:
    """Return the bytes of an integer for the numbers of so many values, and −1."""
    return 1 if values <= 1 << 7 else 2 if values <= 1 << 15 else 4


class _Costs(NamedTuple):
    steps: int  # ⊗ and ⊕ of all products of a slice
    largest: int  # entries of the largest intermediate array
    memory: int  # bytes of the intermediate arrays that exist together, with copies whose axes are moved, and of all witnesses
    at: frozenset[str]  # the indices of the product with the most memory


class _Sized(NamedTuple):
    terms: tuple[Indices, Indices, Indices]  # the indices of both operands and of the result
    numbers: tuple[int, int]  # of the operands
    steps: int
    entries: tuple[int, ...]  # of both operands and the result


@dataclass(frozen=True)
class ContractionPlan(Shown):
    """The order of a contraction's products, with steps and memory; `print` shows it.

    Examples
    --------
    >>> import semiring as sr
    >>> print(sr.contract_expression("ab,bc,cd->ad", (9, 9), (9, 9), (9, 2), semiring="max-plus", optimize=[(1, 2), (0, 1)]).plan)
    contraction of 3 arrays over max-plus, ab,bc,cd->ad
      product 1             bc,cd->bd, 162 steps, 18 entries
      product 2             ab,bd->ad, 162 steps, 18 entries
      steps                 324
      largest intermediate  18 entries
      memory                1.1 KiB, besides operands and result

    Attributes
    ----------
    contraction : Contraction
        The indices of operands and result, with their lengths.
    path : sequence of tuples
        The places of the operands of each product.
    semiring : str
    entry_bytes : int
        Bytes of an entry, of all components.
    witness : bool
    sliced : tuple of str
    """

    contraction: Contraction
    path: Sequence[Sequence[int]]
    semiring: str
    entry_bytes: int = 8
    witness: bool = False
    sliced: tuple[str, ...] = ()

    def within(self, limit: int) -> ContractionPlan:
        """Return the plan with as many sliced indices as a limit of memory in bytes needs."""
        found, lengths = self, self.contraction.lengths
        while found.costs.memory > limit:
            left = [i for i, length in lengths.items() if length > 1 and i not in found.sliced]
            if not left:
                raise TooLargeError(
                    f"the contraction needs {format_bytes(found.costs.memory)} even with all indices sliced, and memory_limit is "
                    f"{format_bytes(limit)}; raise the limit, or pass an order with smaller intermediate arrays"
                )
            # Arrays and witnesses of other steps take memory too.
            tried = [replace(found, sliced=(*found.sliced, i)) for i in ([i for i in left if i in found.costs.at] or left)]
            found = min(tried, key=lambda plan: plan.steps * plan.costs.memory)
        return found

    def with_slices(self, indices: Sequence[str]) -> ContractionPlan:
        """Return the plan with these indices sliced."""
        if unknown := [i for i in indices if i not in self.contraction.lengths]:
            raise SemiringError(f"the order slices the index {unknown[0]!r}, which no operand has; make the tree of the same subscripts")
        return replace(self, sliced=tuple(indices))

    @property
    def slices(self) -> int:
        """Return the number of slices."""
        return math.prod([self.contraction.lengths[i] for i in self.sliced])

    @property
    def steps(self) -> int:
        """Return the ⊗ and ⊕ of all products of all slices."""
        return self.slices * self.costs.steps

    @cached_property
    def one_slice(self) -> Contraction:
        """The contraction of a slice: sliced indices have length 1."""
        return self.contraction._replace(lengths={**self.contraction.lengths, **dict.fromkeys(self.sliced, 1)})

    @cached_property
    def products(self) -> tuple[tuple[int, int, Indices], ...]:
        """The two operands of each product, and the indices of its result."""
        return tuple(steps(self.contraction, self.path))

    def _each_product(self) -> Iterator[_Sized]:
        """Yield the products of a slice, with their steps and sizes."""
        held, contraction = list(self.contraction.inputs), self.one_slice
        for left, right, result in self.products:
            both = frozenset((*held[left], *held[right]))
            entries = tuple([math.prod(contraction.shape(indices)) for indices in (held[left], held[right], result)])
            yield _Sized((held[left], held[right], result), (left, right), math.prod(contraction.shape(tuple(both))), entries)
            held.append(result)

    @cached_property
    def costs(self) -> _Costs:
        """The costs of one slice."""
        live, kept, total, largest, memory, at = 0, 0, 0, 0, 0, frozenset[str]()
        for (a, b, result), numbers, count, (*of_operands, size) in self._each_product():
            both = frozenset((*a, *b))
            total, largest = total + count, max(largest, size)
            now = (live + sum(of_operands) + size) * self.entry_bytes + kept
            if now > memory:
                memory, at = now, both
            summed = math.prod(self.one_slice.shape(tuple(both - {*result})))
            kept += size * witness_bytes(summed) if self.witness and summed > 1 else 0
            live += size - sum(n for i, n in zip(numbers, of_operands, strict=True) if i >= len(self.contraction.inputs))
        return _Costs(total, largest, memory, at)

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the lines that are printed, and shown by Jupyter."""
        subscripts, letters = as_letters(self.contraction)
        title = f"contraction of {counted(len(self.contraction.inputs), 'array')} over {self.semiring}, {subscripts}"
        products = []
        for number, (terms, _, count, (*_, size)) in enumerate(self._each_product(), start=1):
            a, b, c = ("".join(letters[i] for i in indices) for indices in terms)
            products.append((f"product {number}", f"{a},{b}->{c}, {count:,} steps, {counted(size, 'entry', 'entries')}"))
        hidden = [("…", f"{len(products) - _SHOWN:,} more")] if len(products) > _SHOWN else []
        sliced = ", ".join(f"{letters[i]} of length {self.contraction.lengths[i]}" for i in self.sliced)
        return title, [
            *products[:_SHOWN],
            *hidden,
            ("steps", f"{self.steps:,}"),
            ("largest intermediate", counted(self.costs.largest, "entry", "entries")),
            *([("slices", f"{self.slices:,}, one for each value of {sliced}")] if self.sliced else []),
            ("memory", f"{format_bytes(self.costs.memory)}, besides operands and result"),
        ]

    def __str__(self) -> str:
        title, rows = self.facts()
        width = max(len(name) for name, _ in rows)
        return "\n".join([title, *(f"  {name:{width}}  {text}" for name, text in rows)])
