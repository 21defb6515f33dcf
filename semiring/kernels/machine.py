"""The constants of the cost model, with the machines on which they were measured, and the speed of each device.

Units are seconds, unless a comment names another. The fits are least squares of relative errors on graphs of the kinds in
`benchmarks.problems`, of 8 to 10,000 vertices; `python -m benchmarks.regret` compares predictions with measurements. Other machines shift
most constants alike, and a choice only matters where strategies differ widely. A step's time follows from its operations, its bytes and
the machine: cores, the width of vectors, multiprocessors.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import Expr, nodes
from semiring.arrays.devices import gpu_number, gpus, is_gpu
from semiring.arrays.threads import thread_count
from semiring.kernels import hardware
from semiring.kernels.limits import DTypes
from semiring.kernels.operations import is_packed

__all__ = ["Speed", "call_seconds", "speed_of", "used_devices", "worth"]

# Products and closures. 2 cores of AMD Zen 5 (AVX-512), 2026-11-22; one NVIDIA H200 with 132 multiprocessors, 2026-11-22.

CORE_BYTES = {"znver5": 5.0e11, "avx512": 2.1e11, "avx2": 1.3e11, "sse2": 9e10, "neon": 9e10}
"""Bytes of elements a second for a core with two operations a step, as of min-plus: of a processor, or else of an instruction set.

Zen 4 and Xeons with AVX-512 reach 2.1e11, Zen 3 1.2e11, and Zen 4 without AVX-512 1.8e11.
"""

GPU_BYTES, MULTIPROCESSORS = 6.3e13, 132  # bytes of elements a second, for a GPU with so many multiprocessors
CPU_BITS, GPU_BITS = 3.3e12, 2.7e15  # steps a second on packed truth values: a core, that GPU
SERIES = 25  # operations that take as long as an exponential or a logarithm
EXPONENTIALS = 2.5  # operations that take as long as a step over log Σ exp on the CPU, which multiplies and adds exponentials
GPU_EXPONENTIALS = 2.8  # bytes of an element that take as long as a step over log Σ exp on a GPU, which does so in float64
EXACT_STEPS = 3.0e6  # steps a second on Python's numbers
WITNESS = 1.75  # time of a product with witnesses, relative to a product without
PASS, PASS_BYTE = 6.5e-9, 6.1e-10  # base cases, copies and checks of a closure on a core: for each entry, and for each byte of it
PASS_BIT = 9e-10  # the same, for each packed truth value
PRODUCT_CALL, CLOSURE_CALL, PATHS_CALL = 1.5e-5, 3.5e-5, 6e-6  # a warm call on the CPU; the last is added if paths are wanted
PART_CALL = 2.5e-5  # added to a closure for some sources, computed on the part of the graph that the sources reach
SETTLED = 1e-5  # added to a closure by csgraph's conventions
GROWN_CALL, GROWN = 6.4e-5, 1.6e-8  # growing predecessors from the construction matrix: a call, an entry
GPU_CALL, GPU_START = 2.0e-4, 2.0  # a warm call on a GPU with operands on the host; the import of CuPy, the context, the first kernels
GPU_LINK = 1.5e10  # bytes a second between pageable memory and a GPU, with pages of new results; pinned memory is three times as fast

# Rows of a dense matrix by products. The same 2 cores.

ROWS_CALL, ROWS_BYTE, ROWS_ENTRY = 1.7e-4, 3.7e-10, 4e-8  # a call; a byte of the matrix; an entry of the rows
ROWS_STEP = 3.2e-11  # a byte of the matrix for each row, in the few rounds of a complete graph; all threads share the work

# Searches of sparse graphs. The same 2 cores.

READ_CALL, READ_EDGE, MATRIX_CALL = 1.1e-5, 3e-9, 2e-5  # reading a sparse graph: a call, an edge; making a dense matrix of it
LIST_ENTRY, LIST_EDGE = 2.4e-9, 7e-9  # listing the edges of a dense matrix: an entry, an edge
SEARCH_CALL, SEARCH_THREADS, SEARCH = 1.25e-5, 3e-5, 3.5e-8  # a call of searches; waking threads; one search
HOPS_CALL = 1.5e-4  # a call of breadth-first searches from many vertices
BEST = 1.5e-9  # a vertex that a best-first search finds, times log₂ n · log₂(1 + degree)
FOUND, AGAIN = 5.5e-9, 1.65e-8  # a vertex that another search finds; a vertex that label-correcting rounds find again
PLACED = 1.5e-9  # a vertex for each of many breadth-first searches, besides their joint work
EDGE = {"best": 2.7e-9, "levels": 1.2e-9, "rounds": 1.6e-9}  # an edge, each time that a search looks at it
NEAR = 25_000  # vertices whose distances stay in the second-level cache of a core
FAR = {"best": 5.5e-9, "levels": 2.5e-9, "rounds": 2.5e-9}  # added to EDGE for each doubling of n beyond NEAR; 2026-11-24, rounds assumed
ROUNDS = 0.25  # looks of label-correcting rounds at each edge without a trial, times log₂ n, and 1 at least
ENTRY, TREE = 1.1e-9, 4e-10  # an entry of the rows or of their trees; a vertex in a tree of paths
NUMPY_SEARCH, EXACT_SEARCH = 10, 100  # time of a search by NumPy, and with Python's numbers, relative to a compiled one

# Products with sparse matrices. 2 cores of AMD Zen 4, 2026-11-23.

SPARSE_TERM = 2e-8  # a term of a product of two sparse matrices on a core, besides its step
SPARSE_STEP = 8  # steps of a dense product that take as long as the scalar step of a sparse term
SORTED_TERM = 4e-10  # a term of a product of two sparse matrices on a GPU. NVIDIA H200, 2026-11-23
SPARSE_TASKS, ROW_PARTS = 16, 64  # tasks for each thread, as rows differ in work; with a dense operand, where the kernel hands them out

# Sparse elimination. 2 cores of AMD Zen 4, 2026-11-23.

ANALYSIS, FRONT = 1.5e-6, 2e-6  # a vertex or an edge in the ordering and symbolic analysis; a vertex in the elimination, besides its steps
SWEEP = 2.5  # steps of a product that take as long as an entry of the panels in the sweeps for a row, both on all threads
SWEEP_ENTRY = 3.5e-10  # a byte of a row in a sweep on a core
TIGHT = 2e-9  # a vertex or an edge on a core, in growing a row's tree along tight edges
TRIAL_ELIMINATION = 4  # least time of the fastest other strategy, relative to an analysis that may be in vain

# Reachability of sparse graphs by strongly connected components. 2 cores of AMD Zen 4, 2026-11-23.

COMPONENT, UNITED, SPREAD = 2e-8, 2.5e-10, 1.2e-9  # a vertex or an edge; a word of 64 bits in a union; an entry of the matrix

# Spanning forests of symmetric graphs over min and max. 2 cores of AMD Zen 5, 2026-11-27.

SPANNED_ENTRY, SPANNED_EDGE = 2e-9, 9e-8  # an entry of a dense matrix in Prim's algorithm; a vertex or an edge in Kruskal's
ROW_OF_LINE = 9e-10  # an entry of the rows

# Peers: SciPy 1.17 and NetworkX 3.6 on the same machine.

SCIPY_CALL, SCIPY_ENTRY = 2.5e-5, 4.3e-10  # a call; an entry of the rows
SCIPY_ROUND = 1.6e-9  # an edge in one of the n rounds of Bellman–Ford in SciPy's Johnson
SCIPY_FOUND = {"best": 3.4e-9, "levels": 2.5e-9, "rounds": 3.2e-9}  # a vertex that Dijkstra finds, times log₂ n · log₂(1 + degree)
SCIPY_EDGE = {"best": 2.6e-9, "levels": 7e-11, "rounds": 8e-10}  # an edge of such a vertex
NETWORKX_SEARCH, NETWORKX_ROUNDS = 200e-9, 300e-9  # a vertex or an edge in a search; in its Bellman–Ford
NETWORKX_STEP, NETWORKX_NUMPY_STEP = 60e-9, 1.2e-9  # a step of Floyd–Warshall in Python; in NumPy
NETWORKX_REACH, NETWORKX_ACYCLIC = 1.1e-6, 5e-9  # a vertex or an edge, for each vertex of a transitive closure; of an acyclic graph's
NETWORKX_TRIANGLE = 2e-6  # two neighbours of a vertex in local efficiency
BACKEND_CALL, BACKEND_GRAPH, BACKEND_EDGE = 1e-3, 6e-7, 1e-6  # a call; an entry of a matrix made a graph; an edge of a returned graph
NETWORKX_BETWEENNESS = 4e-7, 8e-7  # a vertex or an edge for each source of betweenness, without and with weights
BETWEENNESS = 1.5e-8, 6e-8  # the same by this library, on all threads
BACKEND_ENTRY = {  # an entry of a result
    "johnson": 1.2e-6,  # a list of nodes that are copied twice
    "paths": 5e-7,  # a list of nodes
    "lengths": 7e-8,  # a length in a dictionary
    "numbers": 1e-8,  # a part of a number
}
BACKEND_READ = 4e-7  # a vertex or an edge of a sparse graph
BACKEND_BOUNDS, BACKEND_HOPS = 1.2e-6, 4e-10  # a vertex or an edge, in all searches that bound eccentricities; in hop counts from a vertex
BACKEND_PART, BACKEND_PART_STEPS = 1e-4, 20e9  # a graph of neighbours; steps a second of its closure

# Thresholds between strategies. 2 cores of AMD Zen 5 and Zen 4; up to four NVIDIA H200.

SERIAL, SEARCH_SERIAL = 160**3, 1 << 15  # work below which waking a thread does not pay: steps of a product; vertices and edges of searches
VECTOR_SERIAL = 1 << 19  # elements of a matrix whose product with a vector takes as long as waking a thread
MODULAR_STEPS = 1 << 12  # steps of a product modulo p from which on conversions to floats and back pay (CPU)
LANE_ELEMENTS = 7 << 10  # elements of a small product's operands and result up to which a stack goes one matrix to a lane (CPU)
LANE_SHARE = 3  # at least 1 / LANE_SHARE of the lanes must be filled
LANE_MOVE = 8  # steps that take as long as bringing an element to a lane and back
LANE_SERIES = 6  # the side up to which lanes pay over log Σ exp, whose tiles multiply exponentials
SEARCH_PROBED = 1 << 19  # vertices and edges of all searches below which one thread begins alone
SEARCH_ALONE = 1 << 12  # edges that this thread looks at before it wakes others
SEARCH_ENTRY = 1 / 32  # edges that take as long as an entry of a row
HOPS = 16  # breadth-first searches from which on joint ones pay
FEW_STEPS = 1 << 13  # vertices and edges of all searches up to which each goes alone
SPANNING = 128  # vertices from which on a minimum spanning tree beats products, for a symmetric matrix over min and max
PART = 128  # vertices up to which a graph is closed as a whole, whatever its sources reach
COMPONENTS = 1 << 10  # vertices below which a search for weakly connected components does not pay
CONDENSED = 1 << 13  # the same for strongly connected components in reachability: closing takes little longer than reading the matrix
TRIAL = 1 << 17  # vertices and edges of all searches below which trial searches cost as much as they may save
TRIAL_LOOK = 5e-9  # seconds of a closure, for each unit of TRIAL, below which trials do not pay either
TRIAL_ROUNDS = 2  # looks of rounds at an edge, relative to the predicted number, that a trial may reveal
TRIAL_PARTS = 8  # components to hope for: c of them take 1 / c² of the steps of a closure, and 1 / c of searches
TRIAL_APART = 0.75  # the share of vertices that searches find below which a look for components pays
SHARED = 1 << 14  # vertices from which on several GPUs beat one
BESIDE = 0.1  # the share of the shorter of two overlapping tasks that costs time after all, since memory and cores are shared
PANEL = 3e-3  # agreement of the ranks on a row panel
COPIED = 5e9  # bytes of a row panel a second that a core copies to memory shared by the ranks of a host
PAGES = 1e10  # bytes of a matrix a second, as the host's pages are allotted, pinned and released; all threads share the work
PINNED, NCCL = 5e10, 3e11  # the same from a GPU to that memory; from a GPU to all GPUs of a host by NCCL
NETWORK = 2e10  # the same from host to host, for an assumed network of 200 Gbit/s
UNPACKED = 64  # the side up to which a stack of truth values is faster as bytes, one matrix to a lane, than as bits (CPU)
LOST_DEPTH = 64  # steps of depth that take as long as beginning and ending a product
ASKED_STEPS = 13_000_000_000  # steps that take a GPU as long as the host takes to launch the update of a block row
HIDDEN_STEPS = 1024  # steps for each byte of an entry that hide the entry's copies to a GPU and back
GPU_SWEEP = 1024  # rows out of a sparse elimination from which on a GPU beats a few cores; a GPU needs as long for one row as for hundreds
GPU_ELIMINATION = 2_000_000  # steps of a sparse elimination from which on a GPU beats a few cores, despite its launches
LEVELS_SIDE, LEVELS = 2048, 64  # vertices from which on a GPU may search a matrix by levels, in bits; the most levels that are kept
LEVEL_BYTES = 3.0e12  # bytes of levels a second

# Kernels of a GPU. NVIDIA H200 and H100, a launch at a time between CUDA events.

GLOBAL_LOOKUP = 256  # steps of a product that take as long as the look-up of a witness in global memory
SPLIT_K_ELEMENT = 40  # steps that take as long as writing and adding an element of a partial sum of split-K
SPLIT_K_LAUNCH = 4_000_000  # steps of a multiprocessor that take as long as the launch of this addition
ALIGNED_STEPS, ALIGNED_SIDE = 1 << 29, 512  # steps of a product, and rows or columns, from which on a copy in aligned rows pays
ALIGNED_DEPTH = 512  # the depth of its slabs
SIGNS_STEPS, SIGNS_SIDE = 1 << 30, 512  # steps of a product of float32, and rows and columns, from which on a look at all signs pays
GPU_MODULAR_STEPS = 1 << 26  # steps of a product modulo p from which on conversions to floats and back pay
POWERS_STEPS = 1 << 33  # steps of a product of small integers from which on tensor cores pay
POWERS_SIDE = 256  # its fewest rows, columns and depth
POWERS_CLOSURE, POWERS_SHARE = 7168, 0.6  # vertices of a closure from which on windows pay; their share of the other closure's time
POWERS = {8: 2.8e14, 4: 1.3e14}  # steps a second on tensor cores, for each G
EXPONENTIAL_STEPS = {4: 1 << 27, 8: 1 << 22}  # steps of a product over log Σ exp from which on cuBLAS pays, by bytes of an element
BLAS_STEPS, BLAS_SIDE = {4: 1 << 28, 8: 1 << 25}, 32  # the same for floats; and the least side

used_devices: set[str] = set()
"""The GPUs that this process has computed on."""


@dataclass(frozen=True)
class Speed:
    """The speed of a device."""

    steps: float  # steps of a product a second
    link: float  # bytes a second between host and device, in each direction


def call_seconds(device: str, host: float) -> float:
    """Return the seconds of a call besides its work: `host` on the CPU, more on a GPU."""
    if not is_gpu(device):
        return host
    return GPU_CALL if used_devices else GPU_START


def speed_of(
    device: str, semiring: Semiring, dtypes: DTypes, *, witness: bool = False, packed: bool = True, threads: int | None = None
) -> Speed:
    """Return a device's speed in products over a semiring. Device "cuda", without a number, is an H200 that need not exist."""
    gpu = is_gpu(device)
    link = GPU_LINK if gpu else math.inf
    if device == "reference" or any(d.kind == "O" for d in dtypes):
        return Speed(EXACT_STEPS, link)
    workers = _relative_size(device) if gpu else thread_count(threads)
    if packed and is_packed(semiring, dtypes, witness=witness):
        return Speed((GPU_BITS if gpu else CPU_BITS) * workers, link)
    host = hardware.host()
    rate = GPU_BYTES if gpu else CORE_BYTES.get(host.cpu, CORE_BYTES[host.isa])
    return Speed(rate * workers / (_cost(semiring, dtypes, gpu) * (WITNESS if witness else 1)), link)


@functools.lru_cache(maxsize=256)
def _cost(semiring: Semiring, dtypes: DTypes, gpu: bool) -> float:
    """Return the bytes of an element, times its operations relative to two simple ones."""
    size = sum(max(d.itemsize, 2) for d in dtypes)
    program = semiring.program
    if program.exponential is not None:
        return GPU_EXPONENTIALS if gpu else size * EXPONENTIALS / 2
    return size * sum(map(worth, nodes(*program.add, *program.mul))) / (2 * len(dtypes))


def worth(operation: Expr) -> float:
    """Return the number of simple operations that take as long as one operation of a program."""
    if operation.op in ("var", "const"):
        return 0
    return SERIES if operation.op in ("exp", "expm1", "log", "log1p") else 1


def most_levels(n: int, edges: int) -> int:
    """Return the levels of a search in bits, from all vertices, that take a GPU half as long as a closure of float32 by products."""
    return int(n**3 / (2 * GPU_BYTES / 4) / (n * (edges + 2 * n) / 8 / LEVEL_BYTES))


def _relative_size(device: str) -> float:
    """Return the multiprocessors of a GPU, relative to an H200's."""
    if device == "cuda" and not gpus():
        return 1
    return hardware.device(gpu_number(device)).multiprocessors / MULTIPROCESSORS
