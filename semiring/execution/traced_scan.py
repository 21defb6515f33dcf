"""Executor of scans within functions that JAX traces; derivatives are those of `algorithms.scan_tangents`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.algorithms.scan_tangents import TracedScan, tangents_of_scan
from semiring.arrays import xla
from semiring.arrays.followed import is_traced
from semiring.common.errors import DTypeError, GraphError
from semiring.execution.operands import WITNESS
from semiring.execution.scan import Decoded, ScanOptions, dtypes_of_scan, form_of_scan, lengths_of, scan_sequences, whole_numbers
from semiring.execution.traced import components_of, function_of, in_floats, on_the_cpu
from semiring.execution.traced_product import product_of_stacks

__all__ = ["scan_traced"]

_AXES = {"matrices": 3, "weights": 2, "initial": 1}


class _Scan(NamedTuple):
    """A scan without its operands: components of matrices, of weights if `weighted`, of initial vectors, and the lengths."""

    semiring: Semiring
    options: ScanOptions
    steps: int
    weighted: bool

    def operands(self, parts: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Return the components of matrices, weights and initial vectors."""
        width = self.semiring.components
        return parts[:width], parts[width:-width] if self.weighted else (), parts[-width:]

    def results(self, parts: Any) -> list[tuple[Any, Any]]:
        *given, lengths = parts
        present = [x for x in self.operands(given) if x]
        ends = [x[0].shape[:-axes] for x, axes in zip(present, (3, 2, 1) if self.weighted else (3, 1), strict=True)]
        batch, states = np.broadcast_shapes(*ends, lengths.shape), given[0].shape[-1]
        rows = *batch, self.steps + 1
        values = [((*(batch if self.options.last else rows), states), dtype) for dtype in dtypes_of_scan(self.semiring, present)]
        return values + ([((*rows, states), WITNESS), (rows, WITNESS)] if self.options.witness else [])

    def compute(self, parts: xla.Arrays, results: xla.Arrays) -> None:
        *given, lengths = parts
        a, w, v = self.operands(given)
        a = [np.broadcast_to(x, (*x.shape[:-3], self.steps, *x.shape[-2:])) for x in a]
        matrices, weights, initial = (None if not x else x[0] if len(x) == 1 else tuple(x) for x in (a, w, v))
        found = scan_sequences(matrices, self.semiring, initial, weights, lengths, self.options)
        values, *more = found if self.options.witness else (found,)
        for place, value in zip(results, (*((values,) if self.semiring.components == 1 else values), *more), strict=True):
            place[...] = value

    def differentiate(self, primals: Any, tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        semiring, options, width = self.semiring, self.options, self.semiring.components
        *given, lengths = primals
        whole = function_of(self._replace(options=options._replace(last=False)))(*primals)
        values, more = whole[:width], whole[width:]
        names = zip(self.operands(given), self.operands(tangents[:-1]), _AXES, strict=True)
        (a, of_a), (w, of_w), (v, of_v) = (in_floats(x, t, values[: len(x)], name) for x, t, name in names)

        def product(left: Any, right: Any) -> Any:
            return product_of_stacks(left, right, semiring, (is_selective(semiring), options.device, options.threads, False))

        pushed = tangents_of_scan(semiring, TracedScan(a, w, v, of_a, of_w, of_v, values, lengths, options.reverse), product)
        if options.last:
            values, pushed = ([self.last(x, lengths) for x in part] for part in (values, pushed))
        return (*values, *more), pushed

    def last(self, x: Any, lengths: Any) -> Any:
        """Return the last computed vector of each sequence."""
        jnp = sys.modules["jax.numpy"]
        at = jnp.broadcast_to(0 * lengths if self.options.reverse else lengths, x.shape[:-2])
        return jnp.take_along_axis(x, at[..., None, None], -2)[..., 0, :]


def scan_traced(matrices: Any, semiring: Semiring, initial: Any, weights: Any, lengths: Any, options: ScanOptions) -> Any:
    """Scan arrays of a function that JAX traces; arguments are those of `scan_sequences`."""
    jnp: Any = sys.modules["jax.numpy"]
    if options.witness:
        semiring.require_selective()
    if options.sample is not None:
        raise GraphError("JAX is tracing a function, in which scan takes no sample; leave it out")
    options = options._replace(device=on_the_cpu(options.device, "scan"))
    given = {name: x for name, x in zip(_AXES, (matrices, weights, initial), strict=True) if x is not None}
    parts = {name: components_of(x, semiring, name) for name, x in given.items()}
    shapes = {name: x[0].shape for name, x in parts.items()}
    known = _known(lengths, weights is None and len(shapes["matrices"]) < 3)
    form = form_of_scan(shapes, known)
    kinds = dtypes_of_scan(semiring, parts.values())
    _, one = semiring.identities(kinds)
    if "initial" not in parts:
        parts["initial"] = [jnp.full(form.states, o, kind) for o, kind in zip(one, kinds, strict=True)]
    axes, counts = len(form.batch), jnp.asarray(lengths if is_traced(lengths) else lengths_of(form.batch, form.steps, known))
    counts = counts.reshape((1,) * (axes - counts.ndim) + counts.shape)
    operands = {
        name: [v.reshape((1,) * (axes + own - v.ndim) + v.shape) for v in parts[name]] for name, own in _AXES.items() if name in parts
    }
    if lengths is not None:  # entries beyond the lengths may be NaN
        used = jnp.arange(1, form.steps + 1) <= counts[..., None]
        for name in ("matrices", "weights")[: len(operands) - 1]:
            operands[name] = [_where(used, v, float(o)) if v.dtype.kind == "f" else v for v, o in zip(operands[name], one, strict=True)]
    asked = _Scan(semiring.marked(False), options, form.steps, weights is not None)
    found = function_of(asked)(*(v for x in operands.values() for v in x), counts)
    value = found[0] if semiring.components == 1 else tuple(found[: semiring.components])
    return Decoded(value, *found[-2:]) if options.witness else value


def _known(lengths: Any, alone: bool) -> np.ndarray[Any, Any] | None:
    """Return the lengths; zeros for traced ones, which must not be `alone` in telling the number of steps."""
    if lengths is None or not is_traced(lengths):
        return None if lengths is None else whole_numbers(lengths)
    if alone:
        raise GraphError("JAX is tracing a function, and the lengths alone tell the number of steps; pass numbers, or weights")
    if lengths.dtype.kind not in "iu":
        raise DTypeError(f"lengths must be integers; they are {lengths.dtype}")
    return np.zeros(lengths.shape, np.int64)


def _where(used: Any, v: Any, other: float) -> Any:
    """Replace entries of steps that no sequence uses; axes of length 1 are shared."""
    used = used.any([axis for axis in range(used.ndim) if v.shape[axis] == 1], keepdims=True)
    return sys.modules["jax.numpy"].where(used.reshape(used.shape + (1,) * (v.ndim - used.ndim)), v, other)
