"""`explain`: the plan of a closure, of a graph or of a size, or of a contraction, without computing anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack, overload

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS, as_semiring
from semiring.algebra.definition import Semiring
from semiring.arrays.memory import require_memory
from semiring.common.docstrings import described_by
from semiring.common.errors import SemiringError, TooLargeError, noted, raised_here, refuse_arrays
from semiring.contractions import ContractExpression
from semiring.execution.question import Question, Selection
from semiring.execution.reporting import noting_the_bar
from semiring.planning import Plan, Problem, closure_problem, plan
from semiring.planning.contraction import ContractionPlan
from semiring.planning.options import ExplainedOptions, Options, takes
from semiring.solve import apsp, closure

__all__ = ["explain"]


@overload
def explain(graph: ContractExpression) -> ContractionPlan: ...  # pyright: ignore[reportOverlappingOverload]  # other graphs are of any type


@overload
def explain(
    graph: Any,
    semiring: Semiring | str = ...,
    dtype: Any = ...,
    device: Any = ...,
    *,
    ranks: int = ...,
    gpus: int = ...,
    beside: int = ...,
    **options: Unpack[ExplainedOptions],
) -> Plan: ...


@raised_here
@described_by(apsp, closure)
@takes(ExplainedOptions)
def explain(
    graph: Any,
    semiring: Semiring | str = MIN_PLUS,
    dtype: Any = None,
    device: Any = "auto",
    *,
    ranks: int = 0,
    gpus: int = 0,
    beside: int = 1,
    **options: Unpack[ExplainedOptions],
) -> Plan | ContractionPlan:
    """Return the plan of `closure` or `apsp`: device, algorithm, memory and predicted time. Nothing is computed.

    Examples
    --------
    >>> import semiring as sr
    >>> sr.explain(1000, dtype="float32", device="cpu")  # doctest: +SKIP
    closure of 1,000 vertices over min-plus in float32
      device        cpu
      engine        cpu, avx512 for znver5
      method        recursive, base case of 128
      tile          6 × 64 elements of C in registers; registers: 6 × 4 vectors of 16 elements
      instructions  2 for 16 steps (vfmadd231ps, vminps), and 1.2 that load or copy
      block rows    no, the matrix as a whole
      time          8.1 ms, at 0.195 T steps/s
      memory        3.8 MiB on cpu
      repeat with   method='recursive', block=128, device='cpu'
    >>> sr.explain(sr.edges([(i, i + 1) for i in range(5000)]), sources=0).strategy
    'search'
    >>> sr.explain(sr.contract_expression("ab,bc->ac", (2, 9), (9, 2), semiring="max-plus")).steps
    36

    Parameters
    ----------
    graph : int, or whatever `closure` takes, or expression of `contract_expression`
        A number of vertices stands for a dense matrix in the memory of the host.
    semiring
        As for `closure`.
    dtype : dtype or sequence of dtype, optional
        One for each component; by default the graph's own, or for a number of vertices the usual one of the semiring.
    device : str or list
        As for `apsp`. Without a GPU, "cuda" plans for an NVIDIA H200.
    ranks : int
        The processes of a closure with ``comm=``; 0 for one without.
    gpus : int
        GPUs of each rank; 0 for ranks on the CPU.
    beside : int
        The number of ranks on each host.
    paths : bool
        Plan a closure with paths.
    sources, targets, limit, k, weight, nonedge
        As for `apsp`.

    Returns
    -------
    Plan, or ContractionPlan

    Other Parameters
    ----------------
    threads, memory_limit, method, block
        As for `apsp`.

    Raises
    ------
    SemiringError
        As for `closure`; but too little memory is a note.

    Notes
    -----
    The closure runs this plan. Times are predicted from measured constants, without the compilation of kernels.
    More: How it works, Planning.
    """
    if isinstance(graph, ContractExpression):
        return graph.plan
    semiring = as_semiring(semiring)
    wanted = Options.of(options, "explain", ExplainedOptions)._replace(dtype=dtype, device=device)
    refuse_arrays(dtype=dtype, device=device)
    if isinstance(graph, Problem):
        problem = graph
    elif isinstance(graph, int | float | np.number):
        problem = _of_size(graph, semiring, wanted)
    else:
        with noted("the plan", semiring, graph):
            question = Question(semiring, wanted, presence=semiring.on_truth_values)
            given = question.read(graph)
            problem = question.problem(given, question.selection(given))
    if ranks:
        problem = problem._replace(ranks=_whole(ranks, "ranks"), beside=_whole(beside, "beside") or 1)
        problem = problem._replace(device=("cuda",) * _whole(gpus, "gpus") or "cpu")
    planned = plan(problem._replace(hypothetical=True))
    notes = _obstacles(planned)
    return noting_the_bar(replace(planned, notes=(*planned.notes, *notes)) if notes else planned)


def _whole(number: Any, name: str, kind: str = "a whole number from 0") -> int:
    """Check a number of processes, devices or vertices."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
        raise SemiringError(f"{name} is {number!r}; it is {kind}")
    return int(number)


def _of_size(n: Any, semiring: Semiring, options: Options) -> Problem:
    """State the closure of a dense matrix of a given size, in the memory of the host, as a problem."""
    n = _whole(n, "n", "the number of vertices, a whole number from 0")
    dtypes = semiring.dtypes(semiring.usual_dtypes if options.dtype is None else options.dtype)
    if n * n * max(d.itemsize for d in dtypes) > np.iinfo(np.intp).max:
        raise TooLargeError(f"no array has {n:,} × {n:,} entries: they are more than memory has addresses")
    question = Question(semiring, options)
    rows = len(Selection.of(question, n, None).roots) if question.selects else None
    return closure_problem(semiring, dtypes, (n, n), options, searches=rows)


def _obstacles(planned: Plan) -> list[str]:
    notes = list[str]()
    if set(planned.devices) == {"cuda"}:
        notes.append("there is no GPU here: this is for an NVIDIA H200, with the speed that device='auto' reckons with")
    elif planned.strategy in ("whole", "block rows") and not planned.problem.ranks:
        try:
            for device in ("cpu", planned.device) if planned.gpu and planned.strategy == "whole" else ("cpu",):
                require_memory(planned.n, planned.dtypes, via=planned.paths, batch=planned.problem.shape[:-2], device=device)
        except TooLargeError as error:
            notes.append(str(error))
    return notes
