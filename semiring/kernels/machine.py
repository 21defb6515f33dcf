"""The constants of the cost model: what there is to compute with, what it costs, and where that was measured.

Seconds, unless something else is said. The fits are least squares of relative errors on graphs of the kinds in `benchmarks.problems`, of
8 to 10,000 vertices; `python -m benchmarks.regret` prints how far predictions are from what it measures. Other machines shift most
constants alike, and a choice only matters where strategies differ widely. What a step takes follows from what it is, how many operations
on how many bytes, and from the machine: cores and the width of their vectors, multiprocessors.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import Expr, nodes
from semiring.arrays.devices import gpu_number, gpus, is_gpu
from semiring.arrays.threads import thread_count
from semiring.common.errors import TraceError
from semiring.common.forks import importing
from semiring.kernels.boolean import is_packed

__all__ = ["Speed", "call_seconds", "speed_of", "used_devices", "worth"]

DTypes = tuple[np.dtype[Any], ...]

# Products and closures. 2 cores of AMD Zen 5 (AVX-512), 2026-11-22; one NVIDIA H200 with 132 multiprocessors, 2026-11-22.

CPU_BYTES = 5.0e11
"""Bytes of elements a second that a core with vectors of 64 bytes combines by two operations, a step of min-plus."""

GPU_BYTES, MULTIPROCESSORS = 6.3e13, 132
"""The same of a GPU with so many multiprocessors."""

CPU_BITS, GPU_BITS = 3.3e12, 2.7e15
"""Steps a second on truth values that are packed into bits: of a core, and of that GPU."""

SERIES = 25
"""How many operations an exponential or a logarithm is worth."""

EXPONENTIALS, GPU_EXPONENTIALS = 2.5, 2.8
"""How many operations a step over log Σ exp is worth on the CPU, where exponentials are multiplied and added; and bytes of an element that
take as long on a GPU, where these are of float64."""

EXACT_STEPS = 3.0e6
"""Steps a second of Python's own numbers."""

WITNESS = 1.75
"""How many times as long products take that remember which k won."""

PASS, PASS_BYTE, PASS_BIT = 6.5e-9, 6.1e-10, 9e-10
"""Of an entry of the matrix in base cases, copies and checks of a closure on a core, and of each of its bytes; of a truth value."""

PRODUCT_CALL, CLOSURE_CALL, PATHS_CALL, PART_CALL = 1.5e-5, 3.5e-5, 6e-6, 2.5e-5
"""Of any warm call on the CPU, of its paths, and of a closure for some of its rows: of what they reach."""

SETTLED, GROWN_CALL, GROWN = 1e-5, 6.4e-5, 1.6e-8
"""What csgraph's conventions add to a closure; of predecessors that are grown from the construction matrix, and of each entry."""

GPU_CALL, GPU_START = 2.0e-4, 2.0
"""Of any warm call on a GPU with operands of the host; and of CuPy's import, the context and the first kernels of a process."""

GPU_LINK = 1.5e10
"""Bytes a second between pageable memory and a GPU, pages of new results included; pinned memory is three times as fast."""

# Rows of a dense matrix by products. The same 2 cores.

ROWS_CALL, ROWS_BYTE, ROWS_ENTRY = 1.7e-4, 3.7e-10, 4e-8
"""Of any call, of a byte of the matrix, and of an entry of the rows."""

ROWS_STEP = 3.2e-11
"""Of a byte of the matrix for each row, in the few rounds that a complete graph takes; all threads share them."""

# Searches of sparse graphs. The same 2 cores.

READ_CALL, READ_EDGE, MATRIX_CALL = 1.1e-5, 3e-9, 2e-5
"""Of reading a sparse graph, and of each of its edges; and of making a dense matrix of them."""

LIST_ENTRY, LIST_EDGE = 2.4e-9, 7e-9
"""Of an entry of a dense matrix whose edges are listed, and of each of these."""

SEARCH_CALL, SEARCH_THREADS, SEARCH, HOPS_CALL = 1.25e-5, 3e-5, 3.5e-8, 1.5e-4
"""Of any call of searches, of waking threads, of one search, and of breadth-first searches from many vertices."""

BEST, FOUND, AGAIN, PLACED = 1.5e-9, 5.5e-9, 1.65e-8, 1.5e-9
"""Of a vertex that a search finds: best first, times log₂ n · log₂(1 + degree); breadth first or in rounds; again in rounds; and beside
what many breadth-first searches do together."""

EDGE = {"best": 2.7e-9, "levels": 1.2e-9, "rounds": 1.6e-9}
"""Of an edge each time that a search looks at it."""

NEAR, FAR = 25_000, {"best": 5.5e-9, "levels": 2.5e-9, "rounds": 2.5e-9}
"""Vertices whose distances stay in the second-level cache of a core; and what an edge that a search looks at takes more for each doubling
of them. 2026-11-24; rounds as levels."""

ROUNDS = 0.25
"""How often rounds look at an edge, where nobody has tried: times log₂ n, and once at least."""

ENTRY, TREE = 1.1e-9, 4e-10
"""Of an entry of the rows, or of the trees of their paths; of a vertex in such a tree."""

NUMPY_SEARCH, EXACT_SEARCH = 10, 100
"""How many times as long searches take by NumPy, and with Python's own numbers."""

# Products with sparse matrices. 2 cores of AMD Zen 4, 2026-11-23.

SPARSE_TERM, SPARSE_STEP = 2e-8, 8
"""Of a term of a product of two sparse matrices on a core; and how many steps of a dense one take as long as its step, which is alone."""

SORTED_TERM = 4e-10
"""Of a term of a product of two sparse matrices on a GPU. NVIDIA H200, 2026-11-23."""

SPARSE_TASKS, ROW_PARTS = 16, 64
"""Parts for each thread, as rows differ in what they take; of a product with a dense matrix, whose kernel hands them out itself."""

# Sparse elimination. 2 cores of AMD Zen 4, 2026-11-23.

ANALYSIS, FRONT = 1.5e-6, 2e-6
"""Of a vertex or an edge in the order and the symbolic analysis; of a vertex in the elimination, besides its steps."""

SWEEP, SWEEP_ENTRY = 2.5, 3.5e-10
"""Steps of a product that take as long on all threads as an entry of the panels takes for a row; of a byte of the row on a core."""

TIGHT = 2e-9
"""Of a vertex or an edge, where a row's tree is grown along tight edges, on a core."""

TRIAL_ELIMINATION = 4
"""How many times as long as the analysis the fastest other way has to be predicted, as the analysis may turn out to be in vain."""

# Reachability of sparse graphs by strongly connected components. 2 cores of AMD Zen 4, 2026-11-23.

COMPONENT, UNITED, SPREAD = 2e-8, 2.5e-10, 1.2e-9
"""Of a vertex or an edge; of a word of 64 bits in a union; and of an entry of the matrix."""

# Spanning forests of symmetric graphs over min and max. 2 cores of AMD Zen 5, 2026-11-27.

SPANNED_ENTRY, SPANNED_EDGE, ROW_OF_LINE = 2e-9, 9e-8, 9e-10
"""Seconds of an entry of a dense matrix in Prim's algorithm, of a vertex or an edge in Kruskal's, and of an entry of the rows."""

# Peers: SciPy 1.17 and NetworkX 3.6 on the same machine.

SCIPY_CALL, SCIPY_ENTRY, SCIPY_ROUND = 2.5e-5, 4.3e-10, 1.6e-9
"""Of any call, of an entry of the rows, and of an edge in one of the n rounds of Bellman–Ford that SciPy's Johnson begins with."""

SCIPY_FOUND = {"best": 3.4e-9, "levels": 2.5e-9, "rounds": 3.2e-9}
"""Of a vertex that SciPy's Dijkstra finds, times log₂ n · log₂(1 + degree)."""

SCIPY_EDGE = {"best": 2.6e-9, "levels": 7e-11, "rounds": 8e-10}
"""Of an edge that leaves it."""

NETWORKX_SEARCH, NETWORKX_ROUNDS = 200e-9, 300e-9
"""Of a vertex or an edge in a search of NetworkX's, and in its Bellman–Ford."""

NETWORKX_STEP, NETWORKX_NUMPY_STEP = 60e-9, 1.2e-9
"""Of a step of its Floyd–Warshall, and of that which is NumPy's."""

NETWORKX_REACH, NETWORKX_ACYCLIC, NETWORKX_TRIANGLE = 1.1e-6, 5e-9, 2e-6
"""Of a vertex or an edge for each vertex of its transitive closure, and of those of acyclic graphs; of two neighbours of a vertex in its
local efficiency."""

BACKEND_CALL, BACKEND_GRAPH, BACKEND_EDGE = 1e-3, 6e-7, 1e-6
"""Of a call of the NetworkX backend, of an entry of the matrix that becomes a graph, and of an edge of the graph that it returns."""

NETWORKX_BETWEENNESS, BETWEENNESS = (4e-7, 8e-7), (1.5e-8, 6e-8)
"""Of a vertex or an edge for each source of betweenness, without and with weights: NetworkX's, and on all threads this library's."""

BACKEND_ENTRY = {"johnson": 1.2e-6, "paths": 5e-7, "lengths": 7e-8, "numbers": 1e-8}
"""Of an entry of what it returns: a list of nodes that are copied twice, a list of nodes, a length in a dictionary, a part of a number."""

BACKEND_READ, BACKEND_BOUNDS, BACKEND_HOPS = 4e-7, 1.2e-6, 4e-10
"""Of a vertex or an edge of a sparse graph that is read; of all searches that bound eccentricities together; and in hop counts from each
vertex."""

BACKEND_PART, BACKEND_PART_STEPS = 1e-4, 20e9
"""Of a graph of neighbours, and the steps a second of its closure."""

# Where one way begins to be faster than another one. 2 cores of AMD Zen 5 and Zen 4; up to four NVIDIA H200.

SERIAL, SEARCH_SERIAL = 160**3, 1 << 15
"""Steps of a product on the CPU, and vertices and edges of all searches, below which waking another thread costs more than it saves."""

VECTOR_SERIAL = 1 << 19
"""Elements of a matrix whose product with a vector takes about as long as waking another thread."""

LANE_ELEMENTS, LANE_SHARE, LANE_MOVE, LANE_SERIES = 7 << 10, 3, 8, 6
"""Elements of the operands and the result of a small product up to which the matrices of a stack go one to a lane on the CPU; the part of
the lanes that are filled then, at least; steps that take as long as to bring an element there and back; and the side up to which that is so
over log Σ exp, where tiles multiply exponentials.
"""

SEARCH_PROBED, SEARCH_ALONE, SEARCH_ENTRY = 1 << 19, 1 << 12, 1 / 32
"""Vertices and edges of all searches below which one thread begins alone; edges that it looks at before others are woken; and what an entry
of a row takes, beside an edge."""

HOPS, FEW_STEPS = 16, 1 << 13
"""Breadth-first searches that go faster together, at least; vertices and edges of all searches, at most, where each goes alone."""

SPANNING = 128
"""Vertices from which a minimum spanning tree closes a symmetric matrix over min and max faster than products."""

PART = 128
"""Vertices of graphs that are closed as they are, whatever is reached of them."""

COMPONENTS, CONDENSED = 1 << 10, 1 << 13
"""Vertices below which looking for weakly connected components costs more than it saves; and for the strongly connected ones of
reachability, whose closure is hardly slower than a look at its matrix."""

TRIAL, TRIAL_LOOK, TRIAL_ROUNDS, TRIAL_PARTS, TRIAL_APART = 1 << 17, 5e-9, 2, 8, 0.75
"""Vertices and edges of all searches below which to try a few costs as much as it may save; of a closure, the seconds for each of them
below which that is so; how many times as often as predicted rounds may look at an edge; parts up to which a closure is worth a thought that
as a whole is not, as it takes 1 / c² of its steps in c of them and searches 1 / c; and the share of the vertices that searches find, below
which it is worth a look whether there are parts."""

SHARED = 1 << 14
"""Vertices from which on several GPUs are faster than one."""

BESIDE = 0.1
"""How much of what happens beside something else costs time after all: memory and cores are shared."""

PANEL, COPIED, PINNED, NCCL, NETWORK = 3e-3, 5e9, 5e10, 3e11, 2e10
"""Of a row panel on its way to other ranks: seconds in which they agree on it; bytes a second that a core copies to memory which the ranks
of a host share, that a GPU copies to it, and that NCCL brings to all GPUs of a host; and from host to host, where that was not measured, of
a network of 200 Gbit/s."""

UNPACKED = 64
"""The side of the matrices of a stack of truth values up to which bytes, one matrix to a lane, are faster than bits on the CPU."""

LOST_DEPTH = 64
"""Steps of depth that take as long as a product loses otherwise, because it begins and ends."""

ASKED_STEPS = 13_000_000_000
"""Steps that take as long on a GPU as it takes to ask for the update of a block row."""

HIDDEN_STEPS = 1024
"""Steps for each byte of an entry behind which its copies to a GPU and back can hide."""

GPU_SWEEP = 1024
"""Rows out of a sparse elimination from which on a GPU finds them faster than some cores do, as each takes it as long as hundreds."""

GPU_ELIMINATION = 2_000_000
"""Steps of a sparse elimination from which on a GPU does it faster than some cores: below, its launches take longer."""

LEVELS_SIDE, LEVELS, LEVEL_BYTES = 2048, 64, 3.0e12
"""Vertices of a matrix from which on a GPU may search it by levels, in bits, the most levels that are kept, and bytes of one a second."""

# Kernels of a GPU. NVIDIA H200 and H100, a launch at a time between CUDA events.

GLOBAL_LOOKUP = 256
"""Steps of a product that take as long as to look up a witness in global memory."""

SPLIT_K_ELEMENT, SPLIT_K_LAUNCH = 40, 4_000_000
"""Steps that take as long as to write an element of a part of a sum of split-K and to add it, and those of a multiprocessor as long as that
launch."""

ALIGNED_STEPS, ALIGNED_SIDE, ALIGNED_DEPTH = 1 << 29, 512, 512
"""Steps of a product, and its rows or columns, from which on a copy of an operand in aligned rows pays; and the depth of its slabs."""

SIGNS_STEPS, SIGNS_SIDE = 1 << 30, 512
"""Steps of a product of float32, and its rows and columns, from which on it is worth a look at the signs of all operands."""

EXPONENTIAL_STEPS, BLAS_STEPS, BLAS_SIDE = {4: 1 << 27, 8: 1 << 20}, {4: 1 << 28, 8: 1 << 25}, 32
"""Steps of a product over log Σ exp, and of one of floats, from which on cuBLAS is faster, by bytes of an element; and its least side."""

used_devices: set[str] = set()
"""The GPUs that this process has computed on."""


@dataclass(frozen=True)
class Speed:
    """What a device does.

    Attributes
    ----------
    steps : float
        Steps of a product a second.
    link : float
        Bytes a second between the memory of the host and the device, in each direction.
    """

    steps: float
    link: float


def call_seconds(device: str, host: float) -> float:
    """What a call takes beside its work: on a GPU, or on the CPU as it is told."""
    if not is_gpu(device):
        return host
    return GPU_CALL if used_devices else GPU_START


def speed_of(
    device: str, semiring: Semiring, dtypes: DTypes, *, witness: bool = False, packed: bool = True, threads: int | None = None
) -> Speed:
    """What a device does in a second with products over a semiring.

    Parameters
    ----------
    device : str
        "reference", "cpu", "cuda:0" and so on, or "cuda" for an NVIDIA H200 where there is no GPU.
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    witness : bool
        Whether products remember which k won.
    packed : bool
        Whether truth values are packed into bits.
    threads : int, optional
    """
    gpu = is_gpu(device)
    link = GPU_LINK if gpu else math.inf
    if device == "reference" or any(d.kind == "O" for d in dtypes):
        return Speed(EXACT_STEPS, link)
    workers = _relative_size(device) if gpu else thread_count(threads)
    if packed and is_packed(semiring, dtypes, witness=witness):
        return Speed((GPU_BITS if gpu else CPU_BITS) * workers, link)
    rate = (GPU_BYTES if gpu else CPU_BYTES * _relative_width()) * workers / (_cost(semiring, dtypes, gpu) * (WITNESS if witness else 1))
    return Speed(rate, link)


@functools.lru_cache(maxsize=256)
def _cost(semiring: Semiring, dtypes: DTypes, gpu: bool) -> float:
    """Bytes of an element, times what its operations are worth beside two simple ones."""
    size = sum(max(d.itemsize, 2) for d in dtypes)
    try:
        program = semiring.program
    except TraceError:
        return float(size)
    if program.exponential is not None:
        return GPU_EXPONENTIALS if gpu else size * EXPONENTIALS / 2
    return size * sum(map(worth, nodes(*program.add, *program.mul))) / (2 * len(dtypes))


def worth(operation: Expr) -> float:
    """The number of simple operations that take as long as one of a program."""
    if operation.op in ("var", "const"):
        return 0
    return SERIES if operation.op in ("exp", "expm1", "log", "log1p") else 1


def most_levels(n: int, edges: int) -> int:
    """Levels of a search in bits from all vertices that take a GPU half as long as the products of a closure of float32."""
    return int(n**3 / (2 * GPU_BYTES / 4) / (n * (edges + 2 * n) / 8 / LEVEL_BYTES))


def _relative_size(device: str) -> float:
    """The multiprocessors of a GPU, beside those of an H200."""
    if device == "cuda" and not gpus():
        return 1
    with importing:
        from semiring.kernels.hardware import device as limits

    return limits(gpu_number(device)).multiprocessors / MULTIPROCESSORS


@functools.cache
def _relative_width() -> float:
    """The vectors of this processor, beside those of 64 bytes."""
    with importing:
        from semiring.kernels.hardware import host

    return host().vector_bytes / 64
