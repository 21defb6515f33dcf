"""From a problem to its plan: which strategies apply, what each is predicted to take, and which one is taken.

The rules, in their order:

1. what contradicts itself is refused: an unknown method, a missing law, an absent device, options that exclude each other;
2. a device that is named computes, as does the GPU that the operands lie on;
3. block rows are taken where the caller asks for them (a memory limit, a checkpoint, several GPUs), and where a matrix does not fit;
4. of what is left the predicted fastest is taken, if there is room for it.

Plans of problems that are so small that nobody asks for free memory are kept; the others are made anew, since what is free changes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from semiring.algebra.laws import is_idempotent
from semiring.algorithms.schedules import eliminates, require_closure_laws, require_method, settled
from semiring.arrays.devices import gpus, is_gpu
from semiring.arrays.memory import ALWAYS_FITS, fits, free_on, with_scratch
from semiring.arrays.pieces import CPU_SCRATCH, GPU_SCRATCH
from semiring.common import forks
from semiring.common.errors import SemiringError, TooLargeError
from semiring.common.units import format_bytes
from semiring.kernels import machine
from semiring.kernels.boolean import is_packed
from semiring.kernels.description import sides_of
from semiring.kernels.select import has_searches, scans_for
from semiring.planning.costs import closure_seconds, product_seconds, rows_seconds, scipy_seconds, search_seconds
from semiring.planning.options import named_device, named_gpus
from semiring.planning.plans import Plan
from semiring.planning.problem import Problem
from semiring.streaming.layout import Transport, block_rows, default_side, resident_bytes, resident_rows, streamed_rows

__all__ = ["cut", "plan"]

_SCRATCH_SHARE = 32
"""The share of a limit that an engine's own memory is, where that is more than its scratch."""

_OURS = 0.95
"""The share of free memory that is taken where there is no limit."""

_SEARCHES = {"best": "best-first search", "levels": "breadth-first search", "rounds": "rounds of relaxation"}

_KEPT = 1024
"""Plans that are kept."""

_lock = forks.lock()
_plans: dict[Problem, tuple[Plan, bool]] = {}
"""With each, whether a GPU had been used when it was made."""
forks.in_children(_plans.clear)  # which cannot use the GPUs that their parent used


def plan(problem: Problem) -> Plan:
    """How a problem is solved.

    Raises
    ------
    SemiringError
        Where options contradict each other or the problem, or a device is not there.
    LawError
        Where the semiring lacks a law that this needs.
    TooLargeError
        Where not even a few block rows fit.
    """
    warm = bool(machine.used_devices)
    try:
        found = _plans.get(problem)
    except TypeError:  # for an option that cannot be hashed, of which planning says what is wrong
        found = None
    if found is not None and found[1] == warm:
        return found[0]
    made = {"product": _product, "scan": _scan}.get(problem.kind, _closure)(problem)
    if problem.result_bytes <= ALWAYS_FITS and made.strategy != "block rows":
        with _lock:
            _plans[problem] = made, warm
            while len(_plans) > _KEPT:
                del _plans[next(iter(_plans))]
    return made


# Products.


def _product(problem: Problem) -> Plan:
    """One product, on the device that is named or predicted to be faster."""
    m, n = problem.shape[-2:]
    given = problem.matrices * problem.depth * (m + n) * problem.element_bytes
    device = _device(problem, product_seconds, with_scratch(problem.result_bytes + given))
    seconds = None if problem.exact else product_seconds(problem, device)
    memory = {device: with_scratch(problem.result_bytes) if is_gpu(device) else problem.result_bytes}
    return Plan(problem, (device,), "product", "product", seconds=seconds, memory=memory)


def _scan(problem: Problem) -> Plan:
    """Vectors through a long product, step after step: on the device that is named, or where the operands lie."""
    device = named_device(problem.device, problem.place, exact=problem.exact) or "cpu"
    algorithm = "generated loop" if scans_for(problem.semiring, problem.dtypes, device) else "products one after the other"
    return Plan(problem, (device,), "scan", algorithm, memory={device: problem.result_bytes})


# Closures.


def _closure(problem: Problem) -> Plan:
    """The plan of a closure, of all rows or of some."""
    require_method(problem.method, problem.block)
    if problem.searches is not None and problem.needs_block_rows:
        raise SemiringError(
            "memory_limit and checkpoint are for the closure of all vertices; with sources or targets memory is for their rows alone: "
            "leave them out, and name fewer at a time if that is too much"
        )
    if problem.ranks:
        require_closure_laws(problem.semiring, problem.dtypes, paths=problem.paths)
        return _by_ranks(problem)
    shared = named_gpus(problem.device)
    if problem.needs_block_rows:
        _require_one_matrix_of_the_host(problem)
    require_closure_laws(problem.semiring, problem.dtypes, paths=problem.paths)
    if problem.edges is not None:
        if (
            problem.searches is not None
            and (shared is not None or str(problem.device) not in ("auto", "cpu", "reference"))
            and not problem.scipy
        ):
            raise SemiringError(
                f"device={problem.device!r}: the rows of a sparse graph are found edge by edge, on the host; leave device out, or pass a "
                f"dense array, whose rows a GPU finds by products"
            )
        return _sparse(problem, shared)
    if problem.searches is not None:
        return _some_rows(problem, shared)
    return _all_rows(problem, shared)


def _require_one_matrix_of_the_host(problem: Problem) -> None:
    """Refuse a limit or a checkpoint for what cannot go by block rows."""
    if problem.there:
        raise SemiringError("memory_limit and checkpoint are for a matrix in the memory of the host or on disk; this one lies on a GPU")
    if len(problem.shape) > 2 or problem.exact:
        raise SemiringError(
            "memory_limit and checkpoint are for one matrix of numbers, not for several or for exact entries, which the reference engine "
            "takes as a whole"
        )
    if str(problem.device) == "reference":
        raise SemiringError("the reference engine takes a matrix as a whole: leave out memory_limit and checkpoint, or use device='cpu'")


def _all_rows(problem: Problem, shared: tuple[str, ...] | None) -> Plan:
    """The closure of a matrix, as a whole or by block rows."""
    needed = with_scratch(problem.result_bytes)
    if shared is not None:
        device = problem.place if problem.there else shared[0]
    else:
        device = _device(problem, closure_seconds, 0)
    by_rows = _by_block_rows(problem, shared or (device,), listed=shared is not None)
    if by_rows is not None:
        return by_rows
    if shared is None and is_gpu(device) and str(problem.device) == "auto" and not (problem.there or fits(needed, device)):
        device = "cpu"
    return _whole(problem, device)


def _whole(problem: Problem, device: str) -> Plan:
    """The closure of all matrices as they are, each in one piece."""
    eliminate = eliminates(problem.semiring, problem.dtypes, paths=problem.paths)
    packed = is_packed(problem.semiring, problem.dtypes, witness=problem.paths)
    sides = sides_of(problem.semiring, problem.dtypes, device, packed=packed)
    algorithm, block = settled(problem.method, problem.block, problem.n, sides, eliminate=eliminate)
    size = problem.result_bytes
    return Plan(
        problem,
        (device,),
        "whole",
        algorithm,
        block,
        eliminate,
        None if device == "reference" or problem.n == 0 else closure_seconds(problem, device),
        _memory(problem, (device,), size, with_scratch(size)),
    )


def _by_block_rows(problem: Problem, devices: tuple[str, ...], *, listed: bool) -> Plan | None:
    """The closure by block rows, if it is one."""
    n, wanted, limit = problem.n, problem.needs_block_rows, problem.memory_limit
    if devices[0] == "reference" or n == 0 or len(problem.shape) > 2 or problem.exact:
        return None
    if problem.device == "auto" and limit is not None and limit < 2 * GPU_SCRATCH:
        devices = ("cpu",)  # a GPU's engine would have no room beside its scratch
    # One GPU that is named by a list goes the way of several: their number does not show in the bits of the result.
    shared = listed and (n >= machine.SHARED or problem.block is not None)
    if not shared:
        devices = devices[:1]
    gpu, blocked = is_gpu(devices[0]), problem.method in ("auto", "blocked")
    idempotent = is_idempotent(problem.semiring, problem.dtypes)
    alone = len(devices) == 1 and not (shared and blocked and idempotent)
    if alone and not wanted and (problem.there or not (gpu or problem.place == "disk")):
        return None
    row_bytes = n * problem.entry_bytes
    room = _room(problem, devices)
    needed = with_scratch(n * row_bytes) if gpu else n * row_bytes
    if alone and not problem.checkpoint and needed <= room:
        return None
    if not idempotent:
        if not wanted and not listed:
            return None
        raise SemiringError(
            f"closures over {problem.semiring.name} are eliminated, which takes the matrix as a whole, because ⊕ is not idempotent: leave "
            f"out memory_limit and checkpoint, and name one device"
        )
    _require_blocked(problem)
    room = _beside_scratch(room, n * row_bytes, gpu=gpu)
    side = _side(problem, row_bytes, gpu=gpu)
    share = max(resident_bytes(block_rows(n, side), len(devices), row_bytes))
    resident = shared and not wanted and share <= room
    if problem.there and not resident:
        if len(devices) == 1:
            return None
        raise TooLargeError(
            f"a share of the matrix and two row panels take {format_bytes(share)} on each GPU, where "
            f"{format_bytes(max(room, 0))} are free; bring it to the host, from where GPUs get it by block rows"
        )
    found = Plan(problem, devices, "block rows", "blocked", side, room=room, resident=resident)
    return cut(found, side)


def _room(problem: Problem, devices: tuple[str, ...], sharing: int = 1) -> int:
    """Bytes that there are on each of some devices, whose memory so many processes share."""
    left = [int(_OURS * free) // sharing for d in devices if d != "cuda" and (free := free_on(d)) is not None]
    return min(*left, sys.maxsize, sys.maxsize if problem.memory_limit is None else problem.memory_limit)


def _require_blocked(problem: Problem) -> None:
    """Refuse a method that does not go by block rows."""
    if problem.method not in ("auto", "blocked"):
        raise SemiringError(f"method={problem.method!r} takes the matrix as a whole; by block rows there is 'blocked', which 'auto' takes")


def _by_ranks(problem: Problem) -> Plan:
    """The closure by several processes: by block rows, or by searches of a sparse graph, whose sources they share out."""
    if len(problem.shape) > 2 or problem.exact:
        raise SemiringError("comm= is for one matrix of numbers, not for several or for exact entries")
    if not is_idempotent(problem.semiring, problem.dtypes):
        raise SemiringError(
            f"closures over {problem.semiring.name} are eliminated, which takes the matrix as a whole, because ⊕ is not idempotent: leave "
            f"out comm="
        )
    searches = problem.edges is not None and problem.has_rows_alone and has_searches(problem.semiring, problem.dtypes)
    if problem.searches is not None and not searches:
        raise SemiringError(
            "sources= with comm= is for sparse graphs that are searched on the CPU: leave out device, method and block, pass edges, or let "
            "each rank call this without comm=, for sources of its own"
        )
    if not searches:
        return _rows_by_ranks(problem)
    own = problem._replace(searches=-(-problem.rows // problem.ranks), device="cpu")
    seconds, memory = search_seconds(own, compiled=True), {"cpu": own.rows * own.n * own.entry_bytes}
    searched = Plan(problem, ("cpu",), "search", _SEARCHES[problem.order], seconds=seconds, memory=memory)
    if problem.searches is not None:
        return searched
    try:
        by_rows = _rows_by_ranks(problem)
    except TooLargeError:
        return searched
    faster = by_rows if by_rows.seconds is not None and by_rows.seconds < seconds else searched
    return replace(faster, considered=tuple((p.strategy, p.seconds) for p in (searched, by_rows) if p.seconds is not None))


def _rows_by_ranks(problem: Problem) -> Plan:
    """The closure by block rows, distributed over the devices of several processes."""
    _require_blocked(problem)
    devices = problem.device if isinstance(problem.device, tuple) else (str(problem.device),)
    gpu, n = is_gpu(devices[0]), problem.n
    row_bytes = n * problem.entry_bytes
    room = _beside_scratch(_room(problem, devices) if gpu else _room(problem, devices, problem.beside), n * row_bytes, gpu=gpu)
    side = _side(problem, row_bytes, gpu=gpu)
    share = max(resident_bytes(block_rows(n, side), problem.ranks * len(devices), row_bytes))
    resident = problem.memory_limit is None and share <= room
    return cut(Plan(problem, devices, "block rows", "blocked", side, room=room, resident=resident), side)


def cut(found: Plan, side: int) -> Plan:
    """The plan of a closure by block rows of a side: as many at once as there is room for.

    Raises
    ------
    TooLargeError
        Where not even a few block rows fit.
    """
    problem, speed = found.problem, found.speed
    count = max(1, problem.ranks) * len(found.devices)
    assert speed is not None
    row_bytes, size = problem.n * problem.entry_bytes, problem.result_bytes // max(1, problem.ranks)  # of each rank its own rows
    notes = found.notes
    rows = None
    try:
        if found.resident:
            rows = resident_rows(problem.n, row_bytes, speed, side, count)
        else:
            rows = streamed_rows(problem.n, row_bytes, found.room, speed, side, devices=count)
    except TooLargeError as error:
        if not problem.hypothetical:
            raise
        notes = (*notes, str(error))
    if rows is not None and problem.ranks > 1:
        rows = replace(rows, panel_bytes=rows.side * problem.n * problem.element_bytes, transport=_transport(problem, found))
    own = 0 if rows is None else rows.memory
    memory = _memory(problem, found.devices, size, own or with_scratch(size)) if found.gpu else {"cpu": size + own}
    seconds = None if rows is None else rows.seconds
    return replace(found, block=side, rows=rows, memory=memory, seconds=seconds, notes=notes)


def _transport(problem: Problem, found: Plan) -> Transport:
    """How row panels come to all ranks: from GPU to GPU where each rank has one, else through memory that the ranks of a host share."""
    hosts = -(-problem.ranks // problem.beside)
    if not found.gpu:
        within = machine.COPIED
    else:
        within = machine.NCCL if len(found.devices) == 1 else machine.PINNED / 2
    return Transport(problem.ranks, hosts, within, machine.NETWORK)


def _memory(problem: Problem, devices: tuple[str, ...], size: int, own: int) -> dict[str, int]:
    """Bytes of results of a `size`, and on GPUs of `own` bytes for what is computed there."""
    if not is_gpu(devices[0]):
        return {devices[0]: size}
    returned = not problem.there and devices != ("cuda",)
    return ({"cpu": size} if returned else {}) | dict.fromkeys(devices, own)


def _side(problem: Problem, row_bytes: int, *, gpu: bool) -> int:
    """Rows of a block row, which decide the bits of the result: from the problem and what the caller says, and nothing else."""
    if problem.block is not None:
        return min(int(problem.block), problem.n)
    limit = None if problem.memory_limit is None else _beside_scratch(problem.memory_limit, problem.n * row_bytes, gpu=gpu)
    return default_side(problem.n, row_bytes, limit)


def _beside_scratch(room: int, size: int, *, gpu: bool) -> int:
    """What an engine's own memory leaves of some bytes, for a matrix of a `size`."""
    return room - max(GPU_SCRATCH if gpu else CPU_SCRATCH, min(room, size) // _SCRATCH_SHARE)


# Rows by themselves.


def _sparse(problem: Problem, shared: tuple[str, ...] | None) -> Plan:
    """Searches of a sparse graph, this library's or SciPy's, products of rows with its matrix, or the closure of that."""
    considered = _ways_of_edges(problem)
    strategy = min(considered, key=lambda name: considered[name][0])
    seconds, device = considered[strategy]
    ways = tuple((name, seconds) for name, (seconds, _) in considered.items())
    if strategy == "whole":
        part = problem.searches is not None and not problem.scipy  # the closure of what is reached
        return replace(_whole(problem, device) if part else _all_rows(problem, shared), considered=ways)
    scipys = "johnson" if problem.order == "rounds" else "dijkstra"
    algorithm = {"search": _SEARCHES[problem.order], "SciPy": scipys, "rows by products": "products"}[strategy]
    size = problem.rows * problem.n * problem.entry_bytes
    return Plan(problem, (device,), strategy, algorithm, seconds=seconds, memory={device: size}, considered=ways)


def _ways_of_edges(problem: Problem) -> dict[str, tuple[float, str]]:
    """The strategies for a graph by its edges, or for any of csgraph's: what each is predicted to take, and where."""
    some, named = problem.searches is not None, str(problem.device)
    if problem.nearest:
        return {"SciPy": (scipy_seconds(problem), "cpu")}
    if problem.there or named not in ("auto", "cpu", "reference"):
        gpus_named = named_gpus(problem.device)
        device = _device(problem, closure_seconds, 0) if gpus_named is None else gpus_named[0]
        return {"whole": (closure_seconds(problem, device), device)}
    device = "cpu" if some and not problem.scipy else _device(problem, closure_seconds, with_scratch(problem.result_bytes))
    if problem.exact or named == "reference":
        device = "reference"
    whole = closure_seconds(problem, device), device
    ways: dict[str, tuple[float, str]] = {}
    compiled = has_searches(problem.semiring, problem.dtypes, named)
    if problem.has_rows_alone and (some or problem.scipy or compiled):
        ways["search"] = search_seconds(problem, compiled=compiled), "cpu"
    if problem.scipy and named == "auto":
        ways["SciPy"] = scipy_seconds(problem), "cpu"
    if problem.dense and some and device != "reference":
        ways["rows by products"] = rows_seconds(problem, "cpu"), "cpu"
    # Beside it there is room for what else the caller has, if it takes half of what is free.
    if ways and whole < min(ways.values()) and not fits((2 if some else 1) * problem.result_bytes, device):
        return ways
    return {"whole": whole} | ways


def _some_rows(problem: Problem, shared: tuple[str, ...] | None) -> Plan:
    """Rows of dense matrices: products with them until nothing changes, or the closure of what they reach."""
    if shared is not None:
        device = problem.place if problem.there else shared[0]
    else:
        device = _device(problem, rows_seconds, with_scratch(problem.result_bytes))
    rows, whole = rows_seconds(problem, device), closure_seconds(problem, device)
    possible = problem.has_rows_alone and is_idempotent(problem.semiring, problem.dtypes)
    room = fits(2 * problem.n**2 * problem.entry_bytes, device)
    considered = (("rows by products", rows),) * possible + (("whole", whole),) * (room or not possible)
    if possible and not (room and whole <= rows):
        assert problem.searches is not None
        size = problem.matrices * problem.searches * problem.n * problem.entry_bytes
        return Plan(problem, (device,), "rows by products", "products", seconds=rows, memory={device: size}, considered=considered)
    return replace(_whole(problem, device), considered=considered)


# Devices.


def _device(problem: Problem, seconds: Callable[[Problem, str], float], needed: int) -> str:
    """The device that computes: the one that is named, or the predicted fastest that has room for `needed` bytes."""
    if problem.hypothetical and is_gpu(str(problem.device)) and not gpus() and not problem.exact:
        return "cuda"
    named = named_device(problem.device, problem.place, exact=problem.exact)
    if named is not None:
        return named
    problem = problem._replace(threads=None)  # on any number of them the bits are the same, and those of another device may differ
    faster = seconds(problem, "cuda:0") < seconds(problem, "cpu")
    return "cuda:0" if faster and fits(needed, "cuda:0") else "cpu"
