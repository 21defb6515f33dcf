"""Exchange of arrays with other libraries: their memory as an array of NumPy or CuPy, and results as arrays of theirs.

Nested lists become one array here too, with masks and ∞ of integer dtypes, which NumPy would lose.

No library is imported. Libraries with special cases are named in tables; any other library is read by DLPack, the CUDA array interface, or
NumPy.
"""

from __future__ import annotations

import functools
import operator
import sys
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from semiring.algebra.elements import Array
from semiring.arrays.devices import on_gpu, strided, torch_dtypes
from semiring.arrays.followed import require_entries, requires_gradient
from semiring.common.errors import (
    AssumptionWarning,
    DTypeError,
    GraphError,
    SemiringError,
    ShapeError,
    callers_level,
    install_of,
    listing,
    with_article,
)
from semiring.common.units import counted

__all__ = [
    "ArrayLike", "Borrowed", "Restorer", "a_name_of", "as_array_like", "borrowed", "comes_from", "cut_off", "graph_library", "holds_sparse",
    "is_pydata", "is_sparse", "lends_memory", "name_of",
    "refuse_short_floats", "require_readable", "rounded_integer",
]  # fmt: skip

_LEAST_ROUNDED = 2.0**53  # the float64 of the first integer that float64 rounds
_HOST, _GPU = frozenset({1, 3}), frozenset({2, 13})  # DLPack's device types: CPU and pinned memory; an NVIDIA GPU and managed memory


@dataclass(eq=False, slots=True)  # not frozen, which makes one take four times as long to make
class Borrowed:
    """The memory of an array as NumPy or CuPy sees it; never modified."""

    array: Any  # of NumPy, or of CuPy on a GPU; a copy only if nothing else is possible
    # makes an array of the same library and device of any array, without a copy; None for NumPy, CuPy, and libraries without a function
    restore: Restorer | None = None
    constant: bool = False  # the library relies on the array to stay constant, whatever its flags
    numbers: bool = False  # the array was made of a list of Python's numbers, in which no integer stands for ∞


def borrowed(value: Any) -> Borrowed:
    """Return the memory of an array of any library; NumPy converts other objects.

    GraphError is raised for a library, device or state of an array that prevents reading, DTypeError for the short floats that NumPy lacks.
    """
    if isinstance(value, np.ndarray):
        if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
            raise _masked()
        return Borrowed(np.asarray(value))
    if on_gpu(value):
        return Borrowed(value)
    require_readable(value)
    require_entries(value, "a tensor")
    root = _root(value)
    if root == "torch" and value.requires_grad:  # within ``torch.no_grad``
        value = value.detach()
    if root == "torch" and (found := _in_torchs_stream(value)) is not None:
        return found
    if isinstance(value, list | tuple):
        array, masked, rounded = _array_of(value)
        if masked is not None:
            raise _masked()
        if rounded:
            raise DTypeError(
                f"the nested list has the integer {rounded[1]} at {list(rounded[0])}, which float64 would round, and other entries are "
                "floats; pass numpy.array(…, dtype=object) for exact numbers, or dtype=float to round"
            )
        return Borrowed(array, numbers=_are_numbers(value))
    if not lends_memory(value):
        return Borrowed(np.asarray(value))
    refuse_short_floats(getattr(value, "dtype", ""))
    try:
        array = _memory(value)
    except SemiringError:
        raise
    except Exception as error:  # of the other library, the driver or CuPy
        raise GraphError(f"the {name_of(value)} cannot be read in place: {error}") from error
    make = _maker(value, root)
    restore = None if make is None else Restorer(make, getattr(value, "device", None))
    # CuPy's arrays lack the read-only flag of the interface, so the caller's object is asked.
    interface = None if isinstance(array, np.ndarray) else getattr(value, "__cuda_array_interface__", None)
    return Borrowed(array, restore, root in _CONSTANT or (interface is not None and bool(interface["data"][1])))


def require_readable(value: Any) -> None:
    """Refuse an array that cannot be read by its memory alone, such as a sparse tensor."""
    root = _root(value)
    if (obstacle := _OBSTACLES[root](value) if root in _OBSTACLES else None) is not None:
        raise GraphError(f"the {name_of(value)} {obstacle}")


def cut_off(dtype: Any, kept: Any) -> DTypeError:
    """Return the error for a result in a dtype that the caller's library converts to another one."""
    return DTypeError(
        f"the result is of {dtype}, but the caller's library converts it to {kept}; choose another dtype, or enable "
        f"this one (JAX: jax.config.update('jax_enable_x64', True))"
    )


def _masked() -> GraphError:
    return GraphError("the array has masked entries; pass .filled(…), with the semiring's zero where there is no edge")


def lends_memory(value: Any) -> bool:
    """Return True for an array whose memory others can use: writes there change the array."""
    if isinstance(value, np.generic):
        return False
    return any(hasattr(value, f"__{name}__") for name in ("dlpack", "cuda_array_interface", "array_interface"))


def _are_numbers(rows: Any) -> bool:
    """Return True for lists without arrays as rows, so that NumPy alone has chosen a dtype for their numbers."""
    return not any(hasattr(row, "dtype") for row in rows)


def _memory(value: Any) -> Any:
    if not hasattr(value, "__dlpack__"):
        return np.asarray(value) if hasattr(value, "__array_interface__") else _on_gpu(value)
    kind = int(value.__dlpack_device__()[0]) if hasattr(value, "__dlpack_device__") else min(_HOST)
    if kind in _HOST:
        return np.from_dlpack(value)
    if kind in _GPU:
        return _on_gpu(value)
    raise GraphError(f"the {name_of(value)} is neither in host memory nor on an NVIDIA GPU; copy it to the host first")


def _on_gpu(value: Any) -> Any:
    try:
        import cupy
    except ImportError:
        raise GraphError(f"the {name_of(value)} is on a GPU, for which CuPy is needed: {install_of('cuda13')}") from None
    try:
        if hasattr(value, "__dlpack__"):
            return cupy.from_dlpack(value)
        interface = value.__cuda_array_interface__
        if 0 in interface["shape"]:  # without entries, the address does not identify the GPU
            return cupy.empty(interface["shape"], interface["typestr"])
        return cupy.asarray(value)
    except Exception as error:  # of the other library, the driver or CuPy
        raise GraphError(f"the {name_of(value)} is on a GPU, and CuPy cannot read it there: {error}") from error


class Restorer:
    """Makes arrays of a library of other arrays, in place and without a copy.

    `make` is the library's ``from_dlpack`` or a substitute; `device` is its name of the device, forgotten by a pickle. `here` is True if
    the library works in the current stream of a GPU, so that neither waits for the other, and `empty` makes arrays.
    """

    here = False

    def __init__(self, make: Callable[[Any], Any], device: Any = None) -> None:
        self._make, self._device = make, device

    def __call__(self, array: Any) -> Any:
        """Return the array as one of the library, or raise `DTypeError` for a dtype that the library lacks."""
        try:
            found = self._make(array)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise DTypeError(f"the result is of {array.dtype}, a dtype that the caller's library lacks: {error}") from None
        dtype = str(getattr(found, "dtype", array.dtype)).rpartition(".")[2]
        if dtype != array.dtype.name:  # JAX cuts the entries off
            raise cut_off(array.dtype, dtype)
        if self._device is None or not hasattr(found, "to_device") or found.device == self._device:
            return found
        return found.to_device(self._device)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Allocate an array of the library on the device; None for a dtype that the library lacks."""
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": self._make, "_device": None}


class _TorchRestorer(Restorer):
    """Makes tensors on a GPU where PyTorch works in the current stream."""

    here = True

    def __init__(self, device: Any) -> None:
        self._torch = sys.modules["torch"]
        super().__init__(self._torch.from_dlpack, device)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        theirs = torch_dtypes().get(dtype)
        return None if theirs is None else self._torch.empty(shape, dtype=theirs, device=self._device)

    def __reduce__(self) -> Any:
        return Restorer, (self._make,)


def _in_torchs_stream(tensor: Any) -> Borrowed | None:
    """Return the memory of a tensor on a GPU where PyTorch and CuPy share a stream.

    DLPack, which lets one library wait for the other, takes ten times as long.
    """
    found = strided(tensor)
    if found is None:
        return None
    import cupy

    memory = cupy.cuda.UnownedMemory(found.address, tensor.numel() * found.dtype.itemsize, tensor, tensor.get_device())
    strides = None if tensor.is_contiguous() else found.strides
    array = cupy.ndarray(found.shape, found.dtype, cupy.cuda.MemoryPointer(memory, 0), strides)
    return Borrowed(array, _torch_restorer(tensor.device))


_torch_restorer = functools.lru_cache(maxsize=64)(_TorchRestorer)


def _array_of(rows: Any) -> tuple[Array, Array | None, tuple[tuple[int, ...], int] | None]:
    """Copy nested lists of numbers or arrays to one array; return the array, a mask if something is masked, and its `rounded_integer`.

    ShapeError is raised for elements of different shapes. DTypeError refuses the largest or smallest value of an integer dtype, which
    stands for ∞, among arrays of another dtype.

    >>> _array_of([[0, 1.5], [2, 0]])[0]
    array([[0. , 1.5],
           [2. , 0. ]])
    >>> _array_of([[0, 1], [2]])
    Traceback (most recent call last):
        ...
    semiring.common.errors.ShapeError: the nested list is ragged: element 0 has 2 entries, and element 1 has 1 entry
    """
    _shape(rows)
    try:
        array = np.array(rows)
    except ValueError as error:
        raise ShapeError(f"the nested list is not an array: {error}") from None
    except RuntimeError as error:  # of PyTorch, such as for tensors that require a gradient
        raise GraphError(f"the nested list has tensors that cannot be read ({error}); pass one, such as torch.stack(…)") from None
    masked = False
    for part in _arrays(rows):
        masked = masked or ("numpy.ma" in sys.modules and np.ma.is_masked(part))
        if part.dtype.kind in "iu" and part.dtype.newbyteorder("=") != array.dtype and part.size:
            limits = np.iinfo(part.dtype)
            if part.max() == limits.max or (limits.min < 0 and part.min() == limits.min):
                raise DTypeError(
                    "the nested list has arrays of several dtypes, and an extreme value of "
                    f"{part.dtype}, which stands for ∞ only in this dtype; "
                    "convert all to one dtype, with ∞ as inf or as the extreme value of this dtype"
                )
    return array, _mask(rows) if masked else None, rounded_integer(array, rows)


def rounded_integer(array: Array, entries: Any) -> tuple[tuple[int, ...], int] | None:
    """Find the first integer of `entries` (a nested list, array or table) that the array of floats made of them has rounded.

    >>> rows = [[0, 0.5], [2**53 + 1, 2**60]]
    >>> rounded_integer(np.array(rows), rows)
    ((1, 0), 9007199254740993)
    """
    if array.dtype.kind != "f":
        return None
    with np.errstate(invalid="ignore", over="ignore"):  # float16 has no such numbers
        large = np.isfinite(array) & (np.abs(array) >= _LEAST_ROUNDED)
    for index in map(tuple, np.argwhere(large).tolist()):
        value = functools.reduce(operator.getitem, index, entries) if isinstance(entries, list | tuple) else entries[index]
        if isinstance(value, int | np.integer) and int(value) != int(array[index]):
            return index, int(value)
    return None


def _shape(value: Any) -> tuple[int, ...]:
    """Find the shape of nested lists, and refuse elements of different shapes."""
    if hasattr(value, "shape"):
        return tuple(value.shape)
    if not isinstance(value, list | tuple):
        return ()
    if not _holds_rows(value):
        return (len(value),)  # without a look at each number
    shapes = [_shape(element) for element in value]
    if other := next((i for i, shape in enumerate(shapes) if shape != shapes[0]), 0):
        raise ShapeError(f"the nested list is ragged: element 0 {_described(shapes[0])}, and element {other} {_described(shapes[other])}")
    return (len(value), *shapes[0])


def _holds_rows(value: Sequence[Any]) -> bool:
    """Return True for a list whose first element is a list or an array."""
    return len(value) > 0 and (isinstance(value[0], list | tuple) or getattr(value[0], "ndim", 0) > 0)


def _described(shape: tuple[int, ...]) -> str:
    if not shape:
        return "is no list"
    return f"has {counted(shape[0], 'entry', 'entries')}" if len(shape) == 1 else f"has the shape {shape}"


def _arrays(value: Any) -> Iterator[Array]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple) and _holds_rows(value):
        for element in value:
            yield from _arrays(element)


def _mask(value: Any) -> Array:
    if isinstance(value, list | tuple) and _holds_rows(value):
        return np.array([_mask(element) for element in value])
    return np.asarray(np.ma.getmaskarray(np.ma.asanyarray(value)), dtype=bool)


def refuse_short_floats(dtype: Any) -> None:
    """Refuse bfloat16 and floats of 8 bits and less, which NumPy has only by other packages."""
    name = str(dtype).rpartition(".")[2]
    if name.startswith(("bfloat", "float8_", "float6_", "float4_")):
        raise DTypeError(f"{name} is not supported; convert to float32, which holds it exactly")


def _root(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def name_of(value: Any) -> str:
    """Return the name of an object's class for a message."""
    root = _root(value)
    return type(value).__name__ if root == "builtins" else f"{root}.{type(value).__name__}"


def a_name_of(value: Any) -> str:
    """Return the same name with its article."""
    return with_article(name_of(value))


def _maker(value: Any, root: str) -> Callable[[Any], Any] | None:
    """Return the function that makes arrays of the library of an array: mostly its ``from_dlpack``."""
    if root in ("numba", "numba_cuda"):
        return getattr(sys.modules.get("numba.cuda"), "as_cuda_array", None)
    standard = getattr(value, "__array_namespace__", None)
    return getattr(standard() if standard else sys.modules.get(root), "from_dlpack", None)


def _torch(tensor: Any) -> str | None:
    if tensor.layout is not sys.modules["torch"].strided:
        return "is sparse; pass .to_dense() with the semiring's zero where no entry is stored, or a SciPy sparse array"
    if requires_gradient(tensor):
        return "requires a gradient, which this function does not propagate; pass .detach()"
    if tensor.is_neg():
        return "has a pending change of sign, which only PyTorch sees; pass .resolve_neg()"
    if tensor.device.type == "meta":
        return "has no entries (device='meta')"
    if tensor.device.type not in ("cpu", "cuda"):
        return f"is on {tensor.device}, neither in host memory nor on an NVIDIA GPU; pass .cpu()"
    return None


def _jax(array: Any) -> str | None:
    if isinstance(array, sys.modules["jax"].core.Tracer):
        return (
            "has no entries yet, because JAX is tracing a function, in which only matmul, closures and scan of dense arrays work, without "
            "k and limit; call this library outside of the function, or by jax.pure_callback"
        )
    if len(array.devices()) > 1:
        return f"is spread over {len(array.devices())} devices; bring it to one, as with jax.device_put(array, jax.devices()[0])"
    return None


_OBSTACLES: dict[str, Callable[[Any], str | None]] = {
    "torch": _torch,
    "jax": _jax,
    "jaxlib": _jax,
    "pandas": lambda frame: "has labels, which would be ignored; pass .to_numpy()",
}
"""Functions that say why an array of a library cannot be read, with a remedy; None if nothing prevents reading."""

_CONSTANT = frozenset({"jax", "jaxlib"})  # libraries whose arrays never change


@dataclass(eq=False, slots=True)
class ArrayLike:
    """A dense matrix as the caller passed it."""

    array: Array  # of NumPy, or of CuPy on a GPU; the caller's memory if possible
    missing: Array | None = None  # entries that are non-edges whatever their value (masked, None)
    labels: tuple[Hashable, ...] | None = None
    restore: Callable[[Array], Any] | None = None  # converts a result to the caller's type; None for arrays
    # converts any array to an array of the caller's library; None for NumPy, CuPy, and libraries without arrays
    library: Callable[[Array], Any] | None = None
    constant: bool = False  # the caller's library requires that the array never changes, whatever its flags say
    numbers: bool = False  # the entries were Python numbers: no integer stands for ∞, whatever the dtype of the array
    # the index and the value of an integer among floats that float64 would round; the array then has objects
    rounded: tuple[tuple[int, ...], int] | None = None


def as_array_like(value: Any) -> ArrayLike:
    """Return `value` as an array.

    Raises GraphError if it is no matrix, or cannot be read in place. Raises ShapeError for a ragged nested list.
    """
    if isinstance(value, ArrayLike):
        return value
    # numpy.ma is slow to import, and already imported by the owner of a masked array.
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):
        mask = np.ma.getmask(value)
        return ArrayLike(np.asarray(value.data), None if mask is np.ma.nomask else np.asarray(mask))
    if lends_memory(value):
        return _lent(value)
    if isinstance(value, list | tuple):
        return _nested(value)
    if comes_from(value, "sympy"):
        return _sympy_matrix(value)
    if comes_from(value, "pandas") and hasattr(value, "columns"):
        return _data_frame(value)
    if hasattr(value, "__array__") or _is_buffer(value):
        return _lent(value)
    raise GraphError(
        f"{a_name_of(value)} is no graph; pass a square array, a nested list, a SciPy sparse array, a graph of NetworkX, igraph, "
        "rustworkx, networkit or PyTorch Geometric, or semiring.edges([(u, v, weight), …])"
    )


def _lent(value: Any) -> ArrayLike:
    found = borrowed(value)
    return replace(_objects(found.array), restore=found.restore, library=found.restore, constant=found.constant)


def _is_buffer(value: Any) -> bool:
    try:
        return bool(memoryview(value).format)
    except TypeError:
        return False


def _objects(array: Array) -> ArrayLike:
    if array.dtype.kind != "O":
        return ArrayLike(array)
    missing = np.asarray(np.frompyfunc(lambda v: v is None, 1, 1)(array), dtype=bool)
    return ArrayLike(array, missing if missing.any() else None)


def _nested(rows: Any) -> ArrayLike:
    if len(rows) == 0:
        return ArrayLike(np.empty((0, 0)))
    if isinstance(rows, list) and all(isinstance(row, tuple) and len(row) in (2, 3) for row in rows):  # as edges are
        if any(isinstance(end, str) for row in rows for end in row[:2]):
            raise GraphError("a list of edges is no matrix; pass sr.edges of it")
        if len(rows) == len(rows[0]):
            warnings.warn(
                f"{len(rows)} tuples are read as the rows of a matrix; if they are edges, pass sr.edges of them, and if not, lists",
                AssumptionWarning,
                stacklevel=callers_level(),
            )
    array, masked, rounded = _array_of(rows)
    found = replace(_objects(array if rounded is None else np.array(rows, dtype=object)), numbers=_are_numbers(rows), rounded=rounded)
    if masked is not None:
        return replace(found, missing=masked if found.missing is None else masked | found.missing)
    if found.missing is None:
        return found
    # Without None, the numbers would have a numeric dtype.
    filled = array.copy()
    filled[found.missing] = 0
    typed = np.array(filled.tolist())
    rounded = rounded_integer(typed, filled)
    return replace(found, array=typed if typed.shape == array.shape and rounded is None else filled, rounded=rounded)


def _sympy_matrix(matrix: Any) -> ArrayLike:
    try:
        array = np.empty(matrix.shape, dtype=object)
        array[...] = np.array(matrix.tolist(), dtype=object).reshape(matrix.shape)
    except (AttributeError, TypeError):
        raise GraphError(f"{a_name_of(matrix)} is no matrix") from None
    return ArrayLike(array, restore=partial(_to_sympy, type(matrix)))


def _to_sympy(kind: Callable[..., Any], result: Array) -> Any:
    rows, columns = result.shape if result.ndim == 2 else (1, result.size)  # SymPy's matrices have two axes
    return kind(rows, columns, result.ravel().tolist())


def _data_frame(frame: Any) -> ArrayLike:
    labels = tuple(frame.index)
    if len(set(labels)) < len(labels):
        raise GraphError("the index of the DataFrame names a vertex twice")
    if labels != tuple(frame.columns):
        if set(labels) != set(frame.columns) or len(frame.columns) != len(labels):
            only = listing(sorted(set(labels) ^ set(frame.columns), key=repr), 3)
            raise GraphError(
                f"the index and the columns of the DataFrame must name the same vertices; {only} differ. "
                "A table with a row for each edge is read by sr.edges(frame, source=…, target=…, weight=…)"
            )
        frame = frame[list(labels)]
    array, rounded = frame.to_numpy(), None
    whole = [kind.kind in "iu" for kind in frame.dtypes]
    if array.dtype.kind == "f" and any(whole) and (rounded := rounded_integer(np.where(whole, array, 0), frame.iloc)):
        array = frame.astype(object).to_numpy()
    return replace(_objects(array), rounded=rounded, labels=labels, restore=_Framed(type(frame), frame.index, frame.index))


@dataclass(frozen=True, eq=False)
class _Framed:
    """Convert a result to a DataFrame with names for rows and columns, or a single row or column to a Series."""

    kind: Callable[..., Any]
    rows: Any
    columns: Any

    def part(self, rows: Array, columns: Array) -> _Framed:
        return replace(self, rows=self.rows[rows], columns=self.columns[columns])

    def __call__(self, result: Array) -> Any:
        frame = self.kind(result.reshape(len(self.rows), len(self.columns)), index=self.rows, columns=self.columns)
        if result.ndim == 2:
            return frame
        if result.ndim == 0:
            return result[()]
        return frame.iloc[0] if len(self.rows) == 1 and len(self.columns) == result.size else frame.iloc[:, 0]


def comes_from(value: Any, *libraries: str) -> bool:
    """Return True if the class of `value`, or a base class, belongs to one of the libraries."""
    kind: Any = type(value)
    return not _libraries(kind).isdisjoint(libraries)


@functools.lru_cache(maxsize=256)
def _libraries(kind: type) -> frozenset[str]:
    return frozenset([c.__module__.partition(".")[0] for c in kind.__mro__])


def is_sparse(value: Any) -> bool:
    """Return True for a sparse array or matrix of SciPy, CuPy, or PyData's sparse."""
    return hasattr(value, "tocoo") if comes_from(value, "scipy", "cupyx") else is_pydata(value)


def holds_sparse(value: Any) -> bool:
    """Return True for a sparse array, or a tuple that begins with one, as for structured elements."""
    return is_sparse(value[0] if isinstance(value, tuple | list) and value else value)


def is_pydata(value: Any) -> bool:
    """Return True for an array of PyData's sparse, without importing it."""
    return comes_from(value, "sparse") and hasattr(value, "from_scipy_sparse")


_GRAPHS = {
    "networkx": "adj",
    "igraph": "get_edgelist",
    "rustworkx": "weighted_edge_list",
    "networkit": "iterEdgesWeights",
    "torch_geometric": "edge_attrs",
}
"""Libraries whose graphs are read, and an attribute that only a graph has."""


def graph_library(value: Any) -> str | None:
    """Return the library of a graph that `semiring.graphs.foreign` reads, without importing it; else None."""
    if not comes_from(value, *_GRAPHS):
        return None
    return next((library for library, attribute in _GRAPHS.items() if comes_from(value, library) and hasattr(value, attribute)), None)
