"""Functions for PyTorch's automatic differentiation, and its transformations ``vmap`` and ``jvp``."""

from __future__ import annotations

import functools
import inspect
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

from semiring.arrays.followed import is_staged, is_transformed, requires_gradient
from semiring.common.errors import GraphError, SemiringError

__all__ = [
    "DifferentiableCall",
    "Results",
    "adjoint_if_needed",
    "differentiable",
    "gradient_required",
    "in_front",
    "transformations",
    "transposed",
]

R = TypeVar("R")


@contextmanager
def gradient_required() -> Iterator[None]:
    """Raise the reason against a gradient as `GraphError`, with the way out."""
    try:
        yield
    except SemiringError as error:
        raise GraphError(f"a tensor requires a gradient, but {error}; pass .detach()") from None


def adjoint_if_needed(find: Callable[[], R], operands: Sequence[Any]) -> R | None:
    """Return the adjoint that a function finds; None for tensors that are only compiled, or transformed, such as by `vmap`."""
    needed = any(map(requires_gradient, operands))
    if not needed and is_staged():
        parts = [v for x in operands for v in (x if isinstance(x, tuple | list) else (x,))]
        if not any(is_transformed(x) for x in parts if hasattr(x, "new_full")):
            return None
    try:
        with gradient_required():
            return find()
    except GraphError:
        if needed:
            raise
        return None


Results = list[tuple[tuple[int, ...], Any] | None]
"""Shape and dtype of each result of an `autograd.Function`; None for an absent result."""


class DifferentiableCall(Protocol):
    """A call without its operands, for an `autograd.Function`, or for an operator of `torch.library`."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of results with a gradient, which come first."""

    @property
    @abstractmethod
    def has_gradient(self) -> bool:
        """True if the forward pass finds what the backward pass reads."""

    @abstractmethod
    def on(self, operands: Sequence[Any]) -> DifferentiableCall:
        """Return the call on operands with entries."""

    @abstractmethod
    def in_batch(self, size: int) -> DifferentiableCall:
        """Return the call on so many stacks of ``vmap``; a number that its forward pass finds belongs to this call too."""

    @abstractmethod
    def function(self) -> Any:
        """Return the subclass of `torch.autograd.Function` that computes."""

    @abstractmethod
    def results(self, operands: Sequence[Any]) -> Results:
        """Return the form of all results, by the shapes and dtypes of the operands alone."""


class _Signature(inspect.Signature):
    """Signature of a function with positional arguments alone: binding them has nothing to do."""

    def bind(self, *args: Any, **_: Any) -> Any:
        return SimpleNamespace(args=args, kwargs={}, apply_defaults=int)


@functools.cache
def differentiable(name: str, forward: Any, keep: Any, backward: Any, jvp: Any) -> Any:
    """Make a subclass of `torch.autograd.Function` of its methods, once PyTorch is imported.

    The first argument of `forward` is a call, and its ``in_batch(size)`` returns the call for stacks of operands, as ``vmap`` makes them.
    """

    def vmap(info: Any, axes: tuple[int | None, ...], call: Any, *operands: Any) -> tuple[Any, Any]:
        found = made.apply(call.in_batch(info.batch_size), *in_front(info.batch_size, axes[1:], operands))
        return found, tuple(None if x is None else 0 for x in found)

    forward.__signature__ = _Signature()  # PyTorch binds arguments at every call
    methods = {"forward": forward, "setup_context": keep, "backward": by_vmap(backward), "jvp": by_vmap(jvp), "vmap": vmap}
    made: Any = type(name, (sys.modules["torch"].autograd.Function,), {key: staticmethod(f) for key, f in methods.items()})
    return made


def by_vmap(derivative: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
    """Wrap a derivative so that stacks of PyTorch's older vmap, as of ``is_grads_batched``, go through `torch.func.vmap`."""
    torch: Any = sys.modules["torch"]

    def call(ctx: Any, *tensors: Any) -> Sequence[Any]:
        axes = tuple(0 if x is not None and torch._C._functorch.is_legacy_batchedtensor(x) else None for x in tensors)
        if set(axes) <= {None}:
            return derivative(ctx, *tensors)
        # A thread of PyTorch's for backward passes on a GPU does not know that it works for the first level.
        level, wanted = max(1, torch._C._vmapmode_increment_nesting() - 1), list[bool]()
        torch._C._vmapmode_decrement_nesting()

        def present(*single: Any) -> list[Any]:
            found = derivative(ctx, *single)
            wanted[:] = [x is not None for x in found]
            return [x for x in found if x is not None]

        stacks = [x if axis is None else torch._remove_batch_dim(x, level, 0, axis) for x, axis in zip(tensors, axes, strict=True)]
        found = iter(torch.func.vmap(present, axes)(*stacks))
        return tuple([torch._add_batch_dim(next(found), 0, level) if there else None for there in wanted])

    return call


def in_front(size: int, axes: Sequence[int | None], tensors: Sequence[Any]) -> list[Any]:
    """Return tensors as stacks, with the axis of `torch.func.vmap` in front."""
    return [x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0) for x, axis in zip(tensors, axes, strict=True)]


def transformations() -> list[str]:
    """Return the names of the transformations of `torch.func` under way."""
    functorch: Any = sys.modules["torch"]._C._functorch
    return [level.key().name for level in functorch.get_interpreter_stack() or ()]


def transposed(adjoint: Callable[..., Sequence[Any]], zeros: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """Return the derivatives of values of the form of `zeros` along tangents, by the transpose of the adjoint; None is a tangent of 0."""
    if transformations().count("Jvp") > 1:
        raise GraphError("PyTorch loses forward derivatives of forward derivatives here; take jacfwd of jacrev, or torch.func.hessian")
    given = [number for number, t in enumerate(tangents) if t is not None]
    if not zeros[0].numel() or not all(tangents[number].numel() for number in given):
        return tuple(zeros)

    def some(*gradients: Any) -> list[Any]:
        found = adjoint(*gradients)
        return [found[number] for number in given]

    _, transpose = sys.modules["torch"].func.vjp(some, *zeros)
    return tuple(transpose([tangents[number] for number in given]))
