"""Arrays of NumPy and of CuPy by one text: whose functions take an array, and where it lies. CuPy is imported only for arrays on a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algebra.errors import GraphError

__all__ = ["as_array", "entries", "equal", "host", "is_constant", "lies_on_gpu", "namespace", "on_gpu", "restorer", "to_gpu"]


def on_gpu(array: Any) -> bool:
    """Whether an array is CuPy's."""
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, cupy.ndarray)


def namespace(array: Any) -> Any:
    """The module whose functions take the array: `cupy` for what lies on a GPU, else `numpy`."""
    return sys.modules["cupy"] if on_gpu(array) else np


def equal(array: Any, value: Any) -> Any:
    """Which entries equal a number that is not NaN, subnormals too, which CuPy's own comparisons of float32 take for zeros."""
    if not on_gpu(array) or array.dtype != np.float32:
        return array == value
    bits, wanted = array.view(np.int32), np.float32(value)
    return bits == wanted.view(np.int32) if wanted else (bits == 0) | (bits == np.iinfo(np.int32).min)


def host(array: Any) -> np.ndarray[Any, Any]:
    """The array in the memory of the host: a copy of what lies on a GPU."""
    return np.asarray(array.get() if on_gpu(array) else array)


def entries(array: Any, *indices: Any) -> np.ndarray[Any, Any]:
    """The entries at the places that index arrays of the host tell, in the memory of the host; nothing else is copied."""
    if not on_gpu(array):
        return np.asarray(array[indices])
    with array.device:
        return host(array[tuple(map(to_gpu, indices))])


def to_gpu(array: Any) -> Any:
    """The array on the current GPU: a copy of what lies in the memory of the host."""
    import cupy

    return cupy.asarray(array)


def lies_on_gpu(value: Any) -> bool:
    """Whether an object is an array on an NVIDIA GPU, of whatever library."""
    if isinstance(value, np.ndarray):
        return False
    if on_gpu(value):
        return True
    device = getattr(value, "__dlpack_device__", None)
    if device is not None:
        return int(device()[0]) == _CUDA
    return hasattr(value, "__cuda_array_interface__")


def as_array(value: Any) -> Any:
    """`value` as an array where it lies: of CuPy for what lies on a GPU (CuPy, PyTorch, JAX, Numba), else of NumPy; no copy if possible."""
    if on_gpu(value):
        return value
    if not lies_on_gpu(value):
        return np.asarray(value)
    try:
        import cupy

        return cupy.from_dlpack(value) if hasattr(value, "__dlpack__") else cupy.asarray(value)
    except ImportError:
        raise GraphError(f"the {type(value).__name__} lies on a GPU, for which CuPy is needed: pip install 'semiring[cuda13]'") from None
    except Exception as error:  # whatever the other library, the driver or CuPy may raise
        raise GraphError(f"the {type(value).__name__} lies on a GPU, and CuPy cannot read it there: {error}") from error


def is_constant(value: Any) -> bool:
    """Whether the library of an array relies on it that the array never changes, whatever its flags say, as JAX does."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def restorer(value: Any) -> Callable[[Any], Any] | None:
    """What makes of an array, where it lies and without a copy, one of the kind that `value` is; None where that is NumPy's or CuPy's."""
    if isinstance(value, np.ndarray) or on_gpu(value):
        return None
    root = type(value).__module__.partition(".")[0]
    if root.startswith("numba"):
        return getattr(sys.modules.get("numba.cuda"), "as_cuda_array", None)
    standard = getattr(value, "__array_namespace__", None)
    library = standard() if standard else sys.modules.get(root)
    return getattr(library, "from_dlpack", None)


_CUDA = 2
"""DLPack's number for the memory of an NVIDIA GPU."""
