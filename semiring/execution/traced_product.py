"""Executor of products within functions that JAX traces; derivatives are those of `algorithms.tangents`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from semiring.algebra.definition import Semiring
from semiring.algebra.derivatives import derivative_of_product
from semiring.algorithms.tangents import TracedProduct, tangents_of
from semiring.arrays import xla
from semiring.common.errors import GraphError
from semiring.execution.operands import WITNESS, ProductForm, dtype_of, form_of
from semiring.execution.product import multiply_into, with_witness
from semiring.execution.traced import components_of, function_of, in_floats, on_the_cpu

__all__ = ["multiply_traced", "product_of_stacks"]

Options = tuple[bool, str, int | None, bool]


class _Product(NamedTuple):
    """A product without its operands: `options` are `witness`, `device`, `threads` and `check`; `split` concerns ties."""

    semiring: Semiring
    options: Options
    split: bool = False

    def form(self, parts: Any) -> ProductForm:
        """Return the form of the product of operands, given by their components."""
        left, right = self.halves(parts)
        kinds = (tuple(map(dtype_of, left)), tuple(map(dtype_of, right)))
        return form_of(self.semiring, left[0].shape, kinds[0], right[0].shape, kinds[1], self.options[0])

    def halves(self, parts: Any) -> tuple[Any, Any]:
        """Return the components of both operands."""
        return tuple(parts[: self.semiring.components]), tuple(parts[self.semiring.components :])

    def results(self, parts: Any) -> list[tuple[Any, Any]]:
        form = self.form(parts)
        return [(form.full, dtype) for dtype in (*form.dtypes, *([WITNESS] if self.options[0] else []))]

    def compute(self, parts: xla.Arrays, results: xla.Arrays) -> None:
        left, right = self.halves(parts)
        width = self.semiring.components
        multiply_into(left, right, self.semiring, (tuple(results[:width]), results[-1] if self.options[0] else None), self.options)

    def differentiate(self, primals: Any, tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        semiring, options, split = self
        selects = derivative_of_product(semiring).kind == "selected"
        witness = options[0] or selects
        found = function_of(self._replace(options=(witness, *options[1:])))(*primals)
        values, via = found[: semiring.components], found[-1]
        pairs = zip(self.halves(primals), self.halves(tangents), "ab", strict=True)
        (left, of_left), (right, of_right) = (in_floats(parts, part, values, name) for parts, part, name in pairs)
        product = TracedProduct(left, right, via if selects else values[0], of_left, of_right)
        return found if options[0] else values, tangents_of(semiring, product, split=split)


def multiply_traced(a: Any, b: Any, semiring: Semiring, options: Options, *, alone: bool, split: bool) -> Any:
    """Multiply arrays of a function that JAX traces; arguments are those of `multiply_with_gradient`."""
    if not alone:
        raise GraphError("JAX is tracing a function, in which matmul takes no c, out, mask, dtype and overflow; leave these out")
    options = (options[0], on_the_cpu(options[1], "matmul"), *options[2:])
    asked = _Product(semiring.marked(False), options, split)
    parts = [*components_of(a, semiring, "a"), *components_of(b, semiring, "b")]
    form = asked.form(parts)
    left, right = asked.halves(parts)
    left, right = [x[None, :] for x in left] if form.row else left, [x[:, None] for x in right] if form.column else right
    found = [x.reshape(form.shape) for x in product_of_stacks(left, right, *asked)]
    return with_witness(tuple(found[: semiring.components]), found[-1] if options[0] else None)


def product_of_stacks(left: Sequence[Any], right: Sequence[Any], semiring: Semiring, options: Options, split: bool = False) -> list[Any]:
    """Multiply stacks of matrices; return the components of the product, and the witness if wanted."""
    axes = max(left[0].ndim, right[0].ndim)
    return list(function_of(_Product(semiring, options, split))(*(x.reshape((1,) * (axes - x.ndim) + x.shape) for x in (*left, *right))))
