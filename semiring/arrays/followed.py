"""Arrays that PyTorch or JAX follows: for a gradient, through a transformation, or to compile the code around them.

Neither library is imported.
"""

from __future__ import annotations

import sys
from typing import Any

from semiring.common.errors import GraphError

__all__ = [
    "is_compiling", "is_recorded", "is_staged", "is_traced", "is_transformed", "refuse_compiling", "require_entries", "requires_gradient",
]  # fmt: skip


def requires_gradient(value: Any) -> bool:
    """Return True for a tensor of PyTorch that requires a gradient, or a tuple with one; within ``torch.no_grad`` none does.

    A batch of `torch.func.vmap` requires the gradient of the tensor that it stands for.

    >>> requires_gradient(2.5)
    False
    """
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return False
    batches = torch._C._functorch
    for part in value if isinstance(value, tuple | list) else (value,):
        x = part
        while isinstance(x, torch.Tensor) and batches.is_batchedtensor(x):
            x = batches.get_unwrapped(x)
        if getattr(x, "requires_grad", False):
            return bool(torch.is_grad_enabled())
    return False


def is_recorded(value: Any) -> bool:
    """Return True for tensors that PyTorch has to follow: they require a gradient, have a tangent, are transformed, cast or compiled."""
    if requires_gradient(value):
        return True
    return "torch" in sys.modules and any(map(_is_followed, value if isinstance(value, tuple | list) else (value,)))


def _is_followed(value: Any) -> bool:
    torch: Any = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        return False
    if is_staged() or is_transformed(value) or torch.autograd.forward_ad._current_level >= 0:
        return True
    return value.dtype is torch.bfloat16 and torch.is_autocast_enabled(value.device.type)


def is_transformed(value: Any) -> bool:
    """Return True for a tensor inside a function of ``torch.func``, or a batch of gradients: it stands for others, and has no memory."""
    functorch: Any = sys.modules["torch"]._C._functorch
    return bool(functorch.is_functorch_wrapped_tensor(value) or functorch.is_legacy_batchedtensor(value))


def is_staged() -> bool:
    """Return True while PyTorch runs code on tensors without entries, as its compiler does."""
    c = sys.modules["torch"]._C
    return c._get_dispatch_mode(c._TorchDispatchModeKey.FAKE) is not None


def is_compiling(*operands: Any) -> bool:
    """Return True for tensors of PyTorch while ``torch.compile`` follows the code, also in lists; rows of numbers are passed over."""
    for x in operands:
        if hasattr(x, "new_full"):
            import torch  # pyright: ignore[reportMissingImports]  # torch.compile cannot follow a dictionary of modules

            return bool(torch.compiler.is_dynamo_compiling())
        if type(x) in (tuple, list) and x and type(x[0]) not in (int, float, bool, str) and is_compiling(*x):
            return True
    return False


def refuse_compiling(function: str, *operands: Any) -> None:
    """Refuse a function while ``torch.compile`` follows the code."""
    if is_compiling(*operands):
        raise GraphError(f"{function} does not work inside torch.compile; call it outside, or within torch.compiler.disable")


def require_entries(value: Any, name: str) -> None:
    """Refuse a tensor, or a list of tensors, whose entries PyTorch does not show, because it compiles or transforms the function."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return
    for x in value if type(value) in (list, tuple) else (value,):
        if isinstance(x, torch.Tensor) and hasattr(x, "fake_mode"):
            raise GraphError(
                f"the entries of {name} are unknown while PyTorch compiles; pass numbers in a list, or call the function outside"
            )
        if isinstance(x, torch.Tensor) and is_transformed(x):
            raise GraphError(f"{name} stands for others within torch.func, and has no entries to read; pass numbers, or the whole batch")


def is_traced(value: Any) -> bool:
    """Return True for an array of a function that JAX traces, or a tuple with one.

    >>> is_traced(2.5)
    False
    """
    jax: Any = sys.modules.get("jax")
    parts = value if isinstance(value, tuple | list) else (value,)
    return jax is not None and any(isinstance(part, jax.core.Tracer) for part in parts)
