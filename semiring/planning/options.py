"""The options of all calls: names, types, defaults and meaning.

Type checkers read `ClosureOptions` in ``**options: Unpack[ClosureOptions]``; the library works with `Options`. `takes` adds the options to
the signature of a function. `semiring.apsp` documents the options for all functions, see `described_by`.
"""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation
from semiring.algebra.laws import is_selective
from semiring.algorithms.divergence import extremum_of
from semiring.arrays.devices import gpu_name, gpu_number, gpus, is_gpu, why_no_gpu
from semiring.arrays.threads import require_threads
from semiring.common.errors import DTypeError, LawError, SemiringError, described, refuse_arrays, require_k, similar
from semiring.kernels.limits import DTypes
from semiring.kernels.operations import operations_for

if TYPE_CHECKING:
    from semiring.common.progress import Progress

__all__ = [
    "ClosureOptions", "ComputationOptions", "ExplainedOptions", "Options", "SummaryOptions", "named_device", "named_gpus", "share_of",
    "size_of", "takes", "worst_element",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


class _CommonOptions(TypedDict, total=False):
    weight: str | float | None
    nonedge: Any
    threads: int | None
    memory_limit: int | str | None


class ComputationOptions(_CommonOptions, total=False):
    """Options of reading a graph, and of the devices and memory of a closure; see `semiring.apsp`."""

    dtype: Any
    device: Any
    overwrite: bool
    checkpoint: str | os.PathLike[str] | None
    progress: Callable[[Progress], None] | bool | None
    comm: Any


class SummaryOptions(ComputationOptions, total=False):
    """Options of `semiring.statistics`."""

    sources: Any
    targets: Any
    limit: Any


class ExplainedOptions(_CommonOptions, total=False):
    """Options of `semiring.explain`; `dtype` and `device` are parameters of their function."""

    paths: bool
    sources: Any
    targets: Any
    limit: Any
    k: int | None
    method: str
    block: int | None


class ClosureOptions(ComputationOptions, ExplainedOptions, total=False):
    """Options of a closure, with the rows, columns, paths and algorithm; see `semiring.apsp`."""

    check: bool
    tolerance: float
    node_weight: Any


class Options(NamedTuple):
    """Values of all options, in the order of signatures: the most used first."""

    paths: bool = False
    sources: Any = None
    targets: Any = None
    limit: Any = None
    k: int | None = None
    weight: str | float | None = None
    node_weight: Any = None
    nonedge: Any = None
    dtype: Any = None
    device: Any = "auto"
    threads: int | None = None
    check: bool = True
    tolerance: float = 0.0
    overwrite: bool = False
    memory_limit: int | str | None = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: Callable[[Progress], None] | bool | None = None
    comm: Any = None
    method: str = "auto"
    block: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], function: str, known: Any = ClosureOptions) -> Options:
        """Complete the options that a caller gave to a function.

        Raises TypeError with Python's message for a name that is not `known`. Raises SemiringError for a bad number of threads, or an
        array as the value of a scalar option, or a bad k.
        """
        if not given.keys() <= known.__optional_keys__:
            name = next(name for name in given if name not in known.__optional_keys__)
            meant = "".join(f". Did you mean {other!r}?" for other in similar(name, sorted(known.__optional_keys__)))
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant}")
        found = cls(**given)
        require_threads(found.threads)
        for name, value in given.items():
            if hasattr(value, "shape") and name not in ("node_weight", "nonedge", "sources", "targets"):  # whose truth nobody may ask
                refuse_arrays(**{name: value})
        if found.k is not None:
            found = found._replace(k=require_k(found.k))
        if found.tolerance and (found.overwrite or found.comm is not None):
            raise SemiringError("tolerance= reads the whole graph again if a cycle improves; leave out overwrite and comm")
        return found


def takes(options: Any) -> Callable[[F], F]:
    """Give a function with ``**options`` a signature of the names, types and defaults of a `TypedDict`, for `help` and Jupyter."""

    def with_signature(function: F) -> F:
        own = inspect.signature(function)
        parameters = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for name, default in Options._field_defaults.items():
            if name in options.__optional_keys__:
                kind = Options.__annotations__[name]
                kind = getattr(kind, "__forward_arg__", kind)
                parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind))
        function.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]  # functions may have one
        return function

    return with_signature


# What their values mean.


def worst_element(semiring: Semiring, dtypes: DTypes, limit: Any) -> tuple[Any, ...]:
    """Return the least preferred element within a limit, in dtypes; integers are rounded so that the elements within stay the same.

    Without a limit this is the zero. Raises LawError for a ⊕ that is not selective, and SemiringError for a limit that is no element.
    """
    if not is_selective(semiring, dtypes):
        name = "k" if limit is None else "limit"
        raise LawError(f"{name}= needs a selective ⊕, which tells the better of two elements; {semiring.name} has none")
    if limit is None:
        return semiring.identities(dtypes)[0]
    parts = limit if isinstance(limit, tuple) else (limit,)
    if len(parts) != len(dtypes) or any(isinstance(x, str) or np.ndim(x) for x in parts) or any(bool(x != x) for x in parts):
        raise SemiringError(f"limit is {described(limit)}; it must be an element of {semiring.name}, and not NaN")
    found: list[list[Any]] = [[], []]
    for x, dtype in zip(parts, dtypes, strict=True):
        for ends, rounded in zip(found, (math.floor, math.ceil), strict=True):
            if dtype.kind in "iu":
                bounds = np.iinfo(dtype)
                x_ = min(max(x, bounds.min), bounds.max)
                ends.append(dtype.type(rounded(x_)))
            else:
                ends.append(x if dtype.kind == "O" else dtype.type(x))
    low, high = map(tuple, found)
    both = operations_for(semiring, dtypes).add(low, high)
    return tuple([d.type(v) if d.kind != "O" else v for v, d in zip(both, dtypes, strict=True)])


def share_of(semiring: Semiring, dtypes: DTypes, tolerance: Any) -> float:
    """Return a tolerance as a float.

    Raises SemiringError for a number outside [0, 1), LawError for a semiring without such rates or sums, and DTypeError for exact dtypes.
    """
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float | np.number) or not 0 <= tolerance < 1:
        raise SemiringError(f"tolerance is {described(tolerance)}; it must be a number from 0 and below 1, such as 1e-12")
    ordered = extremum_of(semiring) is not None and is_operation(semiring.program.mul[0], ("add", "mul")) and semiring.star is None
    if not ordered:
        raise LawError(f"tolerance= needs a minimum or maximum of sums or products, as in max-times; {semiring.name} is none")
    if dtypes[0].kind != "f":
        raise DTypeError(f"tolerance= is for rounded numbers, and {dtypes[0]} is exact; leave it out, or use dtype=float")
    return float(tolerance)


def named_device(device: Any, place: str, *, exact: bool, compiled: bool = False) -> str | None:
    """Return the device that computes; None if "auto" leaves the choice to the cost model.

    "auto" leaves operands on their GPU, if `place` is one. Elements are Python's numbers if `exact`; the reference engine lacks what must
    be `compiled`. Raises SemiringError for an unknown or absent device, and for one that cannot reach the arrays or compute the result.
    """
    name = str(device)
    if (name not in ("auto", "cpu", "reference") and not is_gpu(name)) or (compiled and name == "reference"):
        wrong = "device 'reference' cannot do this, which only compiled code does" if name == "reference" else f"unknown device {device!r}"
        raise SemiringError(f"{wrong}; use 'auto', 'cpu', 'cuda', 'cuda:0', …{'' if compiled else ' or ' + repr('reference')}")
    if is_gpu(place):
        if name != "auto" and not is_gpu(name):
            raise SemiringError(f"the array lies on a GPU, which device={name!r} cannot reach; copy it to the host first (CuPy: .get())")
        if name not in ("auto", "cuda") and gpu_number(name) != gpu_number(place):
            raise SemiringError(f"the arrays lie on the GPUs {[gpu_number(place)]}, and device is {name!r}; bring them to one GPU")
        return place
    if is_gpu(name):
        if exact:
            raise SemiringError(f"device={name!r} has no exact arithmetic for object arrays; use device='auto'")
        if gpu_number(name) >= gpus():
            last = f"the last GPU is {gpu_name(gpus() - 1)!r}" if gpus() else f"CuPy finds no GPU ({why_no_gpu()})"
            raise SemiringError(f"there is no device {name!r}: {last}")
        return gpu_name(gpu_number(name))
    if exact or name == "reference":
        return "reference"
    return "cpu" if name == "cpu" or not gpus() else None


def named_gpus(device: Any) -> tuple[str, ...] | None:
    """Return the GPUs of "cuda:all" or of a list of names and numbers; None for other devices.

    Raises SemiringError for a name that is no GPU, a machine without GPUs, or a GPU that is named twice.
    """
    if device == "cuda:all":
        names = tuple(map(gpu_name, range(gpus())))
        if not names:
            raise SemiringError(f"there is no GPU for device='cuda:all': CuPy finds none ({why_no_gpu()})")
        return names
    if not isinstance(device, list | tuple):
        return None
    names = tuple(gpu_name(int(d)) if isinstance(d, int | np.integer) and not isinstance(d, bool) else str(d) for d in device)
    if not names or not all(map(is_gpu, names)) or len(set(map(gpu_number, names))) < len(names):
        raise SemiringError(f"device={device!r}: a list names different GPUs, such as ['cuda:0', 'cuda:1'] or [0, 1]")
    return tuple(named_device(name, "cpu", exact=False) or name for name in names)


def size_of(limit: int | str) -> int:
    """Return the bytes of a memory limit: a number, or a string such as "8GiB", "512 MiB" or "2.5 GB". Raises SemiringError for others."""
    if isinstance(limit, int | np.integer) and not isinstance(limit, bool) and limit > 0:
        return int(limit)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", limit, re.IGNORECASE) if isinstance(limit, str) else None
    if found is None or not float(found[1]):
        raise SemiringError(f"memory_limit is {limit!r}; use a number of bytes, or a string such as '8GiB' or '512MiB'")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2].lower() or " "))
