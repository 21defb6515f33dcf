"""Find shortest paths, closures and matrix products over any semiring, from one definition in plain Python.

>>> import numpy as np, semiring as sr
>>> sr.apsp(np.array([[0.0, 1.0], [np.inf, 0.0]]))
array([[ 0.,  1.],
       [inf,  0.]])

The modules of the public functions; `planning` decides how to compute a call, and `execution` computes it:

    solve.py          apsp, closure, transitive_closure, power
    product.py        matmul, multi_dot, scan
    contractions.py   einsum, contract_expression, contraction
    counting.py       count_exactly
    distances.py      pairwise
    summary.py        statistics, diameter, radius
    sparse_graphs.py  reachability, nearest, factor
    alternatives.py   k_shortest_paths, pareto_paths
    cycles.py         cycle_mean
    explanation.py    explain, the plan of a call
    watching.py       watch, a closure step by step
    testing.py        random matrices, brute-force closures and checks of paths for the tests of users
    config.py         show_config
    cli.py, demo.py   python -m semiring
    csgraph/, networkx_backend/  replacements for functions of SciPy and NetworkX

Packages below them, from the ground up: `common`, `algebra` (definition of a semiring), `arrays` (libraries, devices), `kernels` (one fast
product per engine), `algorithms` (closures and paths from products). Above these: `mpi` (several machines), `streaming` (block rows),
`planning`, `graphs` (input), `files`, `results` (output), `execution`. Each package imports only earlier ones.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from semiring.common import __version__ as __version__
from semiring.common.forks import importing

if TYPE_CHECKING:
    from semiring import ops as ops
    from semiring import testing as testing
    from semiring.algebra.catalogue import BITSET as BITSET
    from semiring.algebra.catalogue import BOOLEAN as BOOLEAN
    from semiring.algebra.catalogue import DISTANCE_COUNT as DISTANCE_COUNT
    from semiring.algebra.catalogue import DISTANCE_HOPS as DISTANCE_HOPS
    from semiring.algebra.catalogue import GF2 as GF2
    from semiring.algebra.catalogue import LOG as LOG
    from semiring.algebra.catalogue import MAX_MIN as MAX_MIN
    from semiring.algebra.catalogue import MAX_PLUS as MAX_PLUS
    from semiring.algebra.catalogue import MAX_TIMES as MAX_TIMES
    from semiring.algebra.catalogue import MIN_MAX as MIN_MAX
    from semiring.algebra.catalogue import MIN_PLUS as MIN_PLUS
    from semiring.algebra.catalogue import PLUS_TIMES as PLUS_TIMES
    from semiring.algebra.catalogue import TROPICAL as TROPICAL
    from semiring.algebra.catalogue import TROPICAL_ARGMIN as TROPICAL_ARGMIN
    from semiring.algebra.catalogue import k_best as k_best
    from semiring.algebra.catalogue import modular as modular
    from semiring.algebra.catalogue import semirings as semirings
    from semiring.algebra.definition import Semiring as Semiring
    from semiring.algebra.laws import check as check
    from semiring.alternatives import ParetoPath as ParetoPath
    from semiring.alternatives import SimplePath as SimplePath
    from semiring.alternatives import k_shortest_paths as k_shortest_paths
    from semiring.alternatives import pareto_paths as pareto_paths
    from semiring.common.errors import AssumptionWarning as AssumptionWarning
    from semiring.common.errors import CheckpointError as CheckpointError
    from semiring.common.errors import DivergenceError as DivergenceError
    from semiring.common.errors import DomainError as DomainError
    from semiring.common.errors import DTypeError as DTypeError
    from semiring.common.errors import GraphError as GraphError
    from semiring.common.errors import LawError as LawError
    from semiring.common.errors import NegativeCycleError as NegativeCycleError
    from semiring.common.errors import OverflowRiskError as OverflowRiskError
    from semiring.common.errors import SemiringError as SemiringError
    from semiring.common.errors import ShapeError as ShapeError
    from semiring.common.errors import TooLargeError as TooLargeError
    from semiring.common.errors import TraceError as TraceError
    from semiring.common.progress import Progress as Progress
    from semiring.config import show_config as show_config
    from semiring.contractions import contract_expression as contract_expression
    from semiring.contractions import contraction as contraction
    from semiring.contractions import einsum as einsum
    from semiring.counting import count_exactly as count_exactly
    from semiring.cycles import CycleMean as CycleMean
    from semiring.cycles import cycle_mean as cycle_mean
    from semiring.distances import pairwise as pairwise
    from semiring.execution.scan import Decoded as Decoded
    from semiring.execution.scan import Sampled as Sampled
    from semiring.explanation import explain as explain
    from semiring.files.reading import read_edges as read_edges
    from semiring.graphs import EdgeList as EdgeList
    from semiring.graphs import NonEdgeWarning as NonEdgeWarning
    from semiring.graphs import edges as edges
    from semiring.planning import Plan as Plan
    from semiring.planning import Problem as Problem
    from semiring.product import Witnessed as Witnessed
    from semiring.product import matmul as matmul
    from semiring.product import multi_dot as multi_dot
    from semiring.product import scan as scan
    from semiring.results.distributed import DistributedMatrix as DistributedMatrix
    from semiring.results.factor import Factor as Factor
    from semiring.results.farthest import FarthestPair as FarthestPair
    from semiring.results.nearest import Nearest as Nearest
    from semiring.results.neighbours import Neighbours as Neighbours
    from semiring.results.paths import Paths as Paths
    from semiring.results.paths import PathsBetween as PathsBetween
    from semiring.results.recording import Recording as Recording
    from semiring.results.statistics import Statistics as Statistics
    from semiring.solve import apsp as apsp
    from semiring.solve import closure as closure
    from semiring.solve import power as power
    from semiring.solve import transitive_closure as transitive_closure
    from semiring.sparse_graphs import Reachability as Reachability
    from semiring.sparse_graphs import factor as factor
    from semiring.sparse_graphs import nearest as nearest
    from semiring.sparse_graphs import reachability as reachability
    from semiring.summary import diameter as diameter
    from semiring.summary import radius as radius
    from semiring.summary import statistics as statistics
    from semiring.watching import watch as watch


_CATALOGUE = """
    BITSET BOOLEAN DISTANCE_COUNT DISTANCE_HOPS GF2 LOG MAX_MIN MAX_PLUS MAX_TIMES MIN_MAX MIN_PLUS PLUS_TIMES TROPICAL TROPICAL_ARGMIN
    k_best modular semirings
"""
_ERRORS = """
    AssumptionWarning CheckpointError DTypeError DivergenceError DomainError GraphError LawError NegativeCycleError OverflowRiskError
    SemiringError ShapeError TooLargeError TraceError
"""
_HOMES = {
    "semiring.algebra.catalogue": _CATALOGUE,
    "semiring.alternatives": "ParetoPath SimplePath k_shortest_paths pareto_paths",
    "semiring.cycles": "CycleMean cycle_mean",
    "semiring.algebra.definition": "Semiring",
    "semiring.common.errors": _ERRORS,
    "semiring.common.progress": "Progress",
    "semiring.algebra.laws": "check",
    "semiring.config": "show_config",
    "semiring.distances": "pairwise",
    "semiring.execution.scan": "Decoded Sampled",
    "semiring.explanation": "explain",
    "semiring.files.reading": "read_edges",
    "semiring.planning": "Plan Problem",
    "semiring.graphs": "EdgeList NonEdgeWarning edges",
    "semiring.contractions": "contract_expression contraction einsum",
    "semiring.counting": "count_exactly",
    "semiring.product": "Witnessed matmul multi_dot scan",
    "semiring.results.distributed": "DistributedMatrix",
    "semiring.results.factor": "Factor",
    "semiring.results.farthest": "FarthestPair",
    "semiring.results.nearest": "Nearest",
    "semiring.results.neighbours": "Neighbours",
    "semiring.results.paths": "Paths PathsBetween",
    "semiring.results.recording": "Recording",
    "semiring.results.statistics": "Statistics",
    "semiring.solve": "apsp closure power transitive_closure",
    "semiring.sparse_graphs": "Reachability factor nearest reachability",
    "semiring.summary": "diameter radius statistics",
    "semiring.watching": "watch",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}
_MODULES = ("algebra", "algorithms", "csgraph", "graphs", "kernels", "ops", "testing")

__all__ = [*_HOME, "ops", "testing"]  # pyright: ignore[reportUnsupportedDunderAll] (the names are in _HOME, which __getattr__ serves)


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name in _HOME:
        with importing:
            value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        with importing:
            return importlib.import_module(f"semiring.{name}")
    raise AttributeError(f"module 'semiring' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*_HOME, *_MODULES, "__version__"})
