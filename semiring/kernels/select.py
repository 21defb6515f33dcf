"""Choose the engine for a semiring, dtypes and a device, and the device's other kernels.

Other kernels are scans and gradients (CPU, GPU), searches of sparse graphs (CPU), and sparse eliminations (GPU). Modules of an engine are
imported at its first use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from semiring.algebra.definition import Semiring
from semiring.algebra.equations import law
from semiring.algebra.expression import Expr, nodes
from semiring.algebra.laws import is_selective
from semiring.arrays.conversion import Array
from semiring.arrays.devices import gpu_number, is_gpu
from semiring.arrays.memory import fits
from semiring.common.forks import importing
from semiring.kernels import cache, machine
from semiring.kernels.engine import Engine, Scans
from semiring.kernels.limits import DTypes
from semiring.kernels.operations import is_packed, modulus_of

if TYPE_CHECKING:
    from semiring.kernels.compressed import ReferenceSparseProducts
    from semiring.kernels.cpu.element_operations import ElementOperations
    from semiring.kernels.cpu.eliminations import Eliminations, TightTrees
    from semiring.kernels.cpu.hops import SourceSets
    from semiring.kernels.cpu.sparse_products import CpuSparseProducts
    from semiring.kernels.cuda.sparse import CudaSparseProducts

    SparseProducts: TypeAlias = CpuSparseProducts | CudaSparseProducts | ReferenceSparseProducts

__all__ = [
    "element_operations", "eliminations_for", "engine_for", "fronts_for", "has_loops", "has_searches", "scans_for",
    "selected_sums", "source_sets",
    "sparse_products_for", "sweeps_for", "tight_trees",
]  # fmt: skip

_NOT_SINGLE = {"exp", "expm1", "log", "log1p"}  # operations that are generated for vectors only
_WHOLE = {"floordiv", "mod"}  # operations that are generated for integers only


def engine_for(
    semiring: Semiring, dtypes: DTypes, device: str = "auto", threads: int | None = None, *, witness: bool = False, packed: bool = True
) -> Engine:
    """Return the engine for matrices over `semiring` whose components have `dtypes`.

    Examples
    --------
    >>> import numpy as np
    >>> from semiring import MIN_PLUS
    >>> from semiring.kernels import Block, engine_for
    >>> a, c = np.array([[0.0, 2.0], [np.inf, 0.0]]), np.full((2, 2), 9.0)
    >>> A, C = Block((a,)), Block((c,))
    >>> engine_for(MIN_PLUS, (a.dtype,), "cpu").multiply_add(A, A, C)  # C ← C ⊕ A⊗A
    >>> c
    array([[0., 2.],
           [9., 0.]])

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    device : str
        "reference", "cpu", or "cuda:0" and so on. "auto" is the reference engine for object arrays, else the CPU.
    threads : int, optional
        Threads of the CPU engine; by default ``SEMIRING_NUM_THREADS``, or all cores.
    witness : bool
        Blocks will carry `via`, which bit-packed matrices cannot.
    packed : bool
        False stores truth values as bytes in any case.
    """
    packed = packed and is_packed(semiring, dtypes, witness=witness)
    if device != "cpu" and is_gpu(device):
        machine.used_devices.add(device)
        with importing:
            from semiring.kernels.cuda.boolean import CudaBooleanEngine
            from semiring.kernels.cuda.engine import CudaEngine
            from semiring.kernels.cuda.modular import CudaModularEngine

        plain = CudaEngine if modulus_of(semiring, dtypes) is None else CudaModularEngine
        return (CudaBooleanEngine if packed else plain)(semiring, dtypes, gpu_number(device))
    return _maker(semiring, dtypes, device == "reference", packed)(semiring, dtypes, threads)


@functools.lru_cache(maxsize=cache.LOADED)
def _maker(semiring: Semiring, dtypes: DTypes, reference: bool, packed: bool) -> Callable[[Semiring, DTypes, int | None], Engine]:
    with importing:
        if reference or any(d.kind == "O" for d in dtypes):
            from semiring.kernels.reference import ReferenceEngine

            return lambda semiring, dtypes, _: ReferenceEngine(semiring, dtypes)
        if packed:
            from semiring.kernels.cpu.boolean import BooleanEngine

            return BooleanEngine
        if modulus_of(semiring, dtypes) is not None:
            from semiring.kernels.cpu.modular import ModularEngine

            return ModularEngine
        from semiring.kernels.cpu.engine import CpuEngine

        return CpuEngine


@functools.lru_cache(maxsize=cache.LOADED)
def element_operations(semiring: Semiring, dtypes: DTypes) -> ElementOperations:
    """Return the operations on single elements for compiled loops; `has_loops` tells if they exist."""
    with importing:
        from semiring.kernels.cpu.element_operations import ElementOperations

    return ElementOperations(semiring, dtypes)


@functools.cache
def source_sets(count: int) -> SourceSets:
    """Return the operations on sets of so many sources for compiled loops: 64, or a multiple."""
    with importing:
        from semiring.kernels.cpu.hops import SourceSets

    return SourceSets(count // 64)


def tight_trees(semiring: Semiring, dtypes: DTypes) -> TightTrees:
    """Return the trees of rows along tight edges; `has_searches` tells if they exist."""
    with importing:
        from semiring.kernels.cpu.eliminations import TightTrees

    return TightTrees(semiring, dtypes)


@functools.lru_cache(maxsize=cache.LOADED)
def has_loops(semiring: Semiring, dtypes: DTypes, device: str = "cpu") -> bool:
    """Return True if loops over elements can be compiled: scalar instructions compute ⊕ and ⊗."""
    if device == "reference" or any(d.kind == "O" for d in dtypes):
        return False
    return not (semiring.program.operations & _NOT_SINGLE or _lacks_instructions(semiring, dtypes))


def has_searches(semiring: Semiring, dtypes: DTypes, device: str = "cpu") -> bool:
    """Return True if compiled searches find best paths: loops can be compiled, and ⊕ selects a walk."""
    return has_loops(semiring, dtypes, device) and is_selective(semiring, dtypes)


def selected_sums(weights: Sequence[Expr], tensors: Sequence[Any], wanted: tuple[bool, bool]) -> tuple[Any, Any] | None:
    """Return the gradients of both operands of a product whose ⊕ selects, by compiled code; None if the tensors or the weights lack it.

    `weights` are the derivatives of ⊗ by both operands. `tensors` are stacks of matrices: the gradients of values, the witness, and the
    operands.
    """
    with importing:
        if tensors[0].is_cuda:
            from semiring.kernels.cuda.gradients import selected_on_gpu

            return selected_on_gpu(weights, tensors, wanted)
        if {e.op for e in nodes(*weights)} & (_NOT_SINGLE | _WHOLE):
            return None
        from semiring.kernels.cpu.gradients import selected_on_cpu

    return selected_on_cpu(weights, tensors, wanted)


def scans_for(semiring: Semiring, dtypes: DTypes, device: str, states: int, threads: int | None = None) -> Scans | None:
    """Return the compiled scans, or None if successive products have to compute the scan.

    A GPU's scans take vectors of up to about a thousand `states`, and need a zero that annihilates.
    """
    if device == "reference" or any(d.kind == "O" for d in dtypes):
        return None
    with importing:
        if is_gpu(device):
            from semiring.kernels.cuda.scan import CudaScans, fits

            # Vectors are padded with 0, and products with padding must stay 0.
            suits = fits(semiring, dtypes, states) and law(semiring, dtypes, "0 annihilates").status == "passed"
            return CudaScans(semiring, dtypes, gpu_number(device)) if suits else None
        from semiring.kernels.cpu.scans import CpuScans

    return CpuScans(semiring, dtypes, threads)


def sparse_products_for(semiring: Semiring, dtypes: DTypes, device: str, threads: int | None = None) -> SparseProducts:
    """Return the products of sparse matrices, compiled where possible."""
    if is_gpu(device):
        machine.used_devices.add(device)
        with importing:
            from semiring.kernels.cuda.sparse import CudaSparseProducts

        return CudaSparseProducts(semiring, dtypes, gpu_number(device))
    return _sparse_products(semiring, dtypes, device == "reference", threads)


@functools.lru_cache(maxsize=cache.LOADED)
def _sparse_products(semiring: Semiring, dtypes: DTypes, reference: bool, threads: int | None) -> SparseProducts:
    """Return the sparse products of the host, which keep no state between calls."""
    with importing:
        if reference or any(d.kind == "O" for d in dtypes) or _lacks_instructions(semiring, dtypes):
            from semiring.kernels.compressed import ReferenceSparseProducts

            return ReferenceSparseProducts(semiring, dtypes)
        from semiring.kernels.cpu.sparse_products import CpuSparseProducts

        return CpuSparseProducts(semiring, dtypes, threads)


def _lacks_instructions(semiring: Semiring, dtypes: DTypes) -> bool:
    return bool(semiring.program.operations & _WHOLE) and any(d.kind == "f" for d in dtypes)


def sweeps_for(semiring: Semiring, dtypes: DTypes, device: str, nodes: Any, parents: Array) -> Any:
    """Return a GPU's sweeps through the panels of an elimination, see `CudaSweeps`; None on other devices."""
    if not is_gpu(device):
        return None
    with importing:
        from semiring.kernels.cuda.fronts import CudaSweeps

    return CudaSweeps(semiring, dtypes, gpu_number(device), nodes, parents)


def eliminations_for(semiring: Semiring, dtypes: DTypes, threads: int | None = None) -> Eliminations:
    """Return the compiled parts of sparse eliminations, for dtypes that can be compiled."""
    with importing:
        from semiring.kernels.cpu.eliminations import Eliminations

    return Eliminations(semiring, dtypes, threads)


def fronts_for(semiring: Semiring, dtypes: DTypes, device: str, steps: int, tree: tuple[Any, Array, Array], *, by_star: bool) -> Any:
    """Return a GPU's fronts, see `CudaFronts`; None if the host is as fast or the GPU lacks memory.

    The elimination takes `steps` steps. `tree` has the supernodes, their parents, and the numbers of edges.
    """
    if not is_gpu(device) or steps < machine.GPU_ELIMINATION:
        return None
    with importing:
        from semiring.kernels.cuda.fronts import CudaFronts, front_bytes

    if not fits(front_bytes(tree[0], dtypes), device):
        return None
    return CudaFronts(semiring, dtypes, gpu_number(device), *tree, by_star=by_star)
