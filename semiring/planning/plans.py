"""The plan of a computation: strategy, devices, memory and predicted seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.search import Searches, searches_for
from semiring.arrays.devices import is_gpu
from semiring.common.forks import cached_property
from semiring.common.html import Shown, bars, escape, faint, table
from semiring.common.units import counted, duration, format_bytes, step_rate
from semiring.kernels import machine
from semiring.kernels.description import BlockSides, KernelDescription, describe, sides_of
from semiring.kernels.engine import Engine, Scans, fresh_engine
from semiring.kernels.machine import Speed, speed_of
from semiring.kernels.overflow.products import ProductChecks, checks_for
from semiring.kernels.select import engine_for, scans_for
from semiring.planning.problem import Problem
from semiring.streaming.layout import BlockRows

__all__ = ["Plan"]

_BRIEF = 0.1
"""Predicted seconds up to which no steps are counted unasked: far less than a user waits for, as predictions may be wrong."""


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """The plan of a computation, from `explain`; Jupyter shows a table.

    Examples
    --------
    >>> import semiring as sr
    >>> plan = sr.explain(1000, device="cpu")
    >>> plan.strategy, plan.algorithm, plan.devices
    ('whole', 'recursive', ('cpu',))

    Attributes
    ----------
    problem : Problem
        The problem that is solved.
    devices : tuple of str
        "cpu", "reference", "cuda:0" and so on; "cuda" for an absent GPU.
    strategy : str
        - "product" and "scan".
        - "whole": the closure of the whole matrix; "block rows": out of core or on several GPUs.
        - "search" from each source; "search from both ends" of one pair; "SciPy": SciPy's own searches.
        - "elimination" of a sparse graph, with two sweeps for each row; "condensation": strongly connected components; "spanning tree".
        - "rows by products": some rows times the matrix, until a fixed point.
        - "hop counts" and "rows in turn" for statistics; "bounds" for extreme eccentricities.
    algorithm : str
        "iterative", "blocked" or "recursive" for a closure; else the algorithm of the strategy.
    block : int
        The side of the pivot blocks, of the base case, or of the block rows.
    eliminate : bool
        True if a closure eliminates with star(pivot), because ⊕ is not idempotent.
    seconds : float or None
        Predicted seconds, without the compilation of kernels; None for exact numbers.
    memory : dict
        Bytes of results and working memory, by device, without the operands.
    considered : tuple of (str, float)
        The candidate strategies with their predicted seconds.
    spanning : float or None
        Predicted seconds by a minimum spanning tree, for a dense matrix over min and max that turns out symmetric, or None.
    rows : BlockRows or None
        The block rows of the matrix, if the strategy has some.
    resident : bool
        True if each of several GPUs keeps a share of the matrix in memory.
    room : int
        Bytes for block rows on each device.
    notes : tuple of str
        Obstacles and remarks.
    """

    problem: Problem
    devices: tuple[str, ...]
    strategy: str
    algorithm: str = ""
    block: int = 0
    eliminate: bool = False
    seconds: float | None = None
    memory: dict[str, int] = field(default_factory=dict)
    considered: tuple[tuple[str, float], ...] = ()
    spanning: float | None = None
    rows: BlockRows | None = None
    resident: bool = False
    room: int = 0
    notes: tuple[str, ...] = ()

    @cached_property
    def semiring(self) -> Semiring:
        """The semiring of the problem."""
        return self.problem.semiring

    @cached_property
    def n(self) -> int:
        """The number of vertices, or of columns of a product."""
        return self.problem.n

    @cached_property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtypes of the computation."""
        return self.problem.dtypes

    @cached_property
    def paths(self) -> bool:
        """True if the construction matrix is computed too."""
        return self.problem.paths

    @cached_property
    def device(self) -> str:
        """The first of the devices."""
        return self.devices[0]

    @cached_property
    def gpu(self) -> bool:
        """True if the devices are GPUs."""
        return is_gpu(self.devices[0])

    @cached_property
    def checks(self) -> ProductChecks:
        """The checks of a product's operands."""
        return checks_for(self.semiring, self.dtypes, self.problem.depth, dense=self.device != "reference")

    def engine(self) -> Engine:
        """Return a new engine of the first device."""
        return fresh_engine(self._prototype)

    @cached_property
    def _prototype(self) -> Engine:
        packed = self.problem.is_packed(self.device)
        return engine_for(self.semiring, self.dtypes, self.device, self.problem.threads, witness=self.paths, packed=packed)

    @cached_property
    def searches(self) -> Searches | None:
        """The generated searches; None if NumPy searches."""
        return searches_for(self.semiring, self.dtypes, str(self.problem.device), self.problem.threads)

    @cached_property
    def scans(self) -> Scans | None:
        """The generated scans; None if products one after the other replace them."""
        return scans_for(self.semiring, self.dtypes, self.device, self.n, self.problem.threads)

    @property
    def speed(self) -> Speed | None:
        """Steps a second, and bytes a second between host and GPU, of the prediction; None for the reference engine."""
        if self.device == "reference":
            return None
        packed = self.strategy != "block rows" and self.problem.is_packed(self.device)
        return speed_of(self.device, self.semiring, self.dtypes, witness=self.paths, packed=packed, threads=self.problem.threads)

    @cached_property
    def outline(self) -> KernelDescription:
        """Engine, tile and instructions of a step. The CPU's are counted in machine code that is generated for that."""
        packed = self.rows is None and self.problem.is_packed(self.device)
        return describe(self.semiring, self.dtypes, self.device, self.n, witness=self.paths, packed=packed)

    @property
    def sides(self) -> BlockSides:
        """The sides of the engine's blocks."""
        packed = self.strategy == "whole" and self.problem.is_packed(self.device)
        return sides_of(self.semiring, self.dtypes, self.device, packed=packed)

    @cached_property
    def by_edges(self) -> bool:
        """True if rows follow from the edges of a sparse graph, without a matrix."""
        return self.strategy in ("search", "search from both ends", "elimination", "condensation", "spanning tree")

    @cached_property
    def brief(self) -> bool:
        """True if the computation is predicted to end before a user asks for its progress."""
        seconds = self.problem.matrices * self.n**3 / machine.EXACT_STEPS if self.seconds is None else self.seconds
        return seconds < _BRIEF

    @property
    def method(self) -> str:
        """The algorithm in words."""
        if self.strategy == "block rows":
            return f"blocked, by block rows of {self.block:,}"
        if self.strategy != "whole":
            return self.algorithm
        sides, name, side = self.sides, self.algorithm, self.block
        if self.n <= sides.pivot and (name == "recursive" or side >= self.n):
            words = "one pivot block"
        elif name == "recursive" and self.n <= side and self.n <= sides.sweep:
            words = f"blocked, pivot blocks of {sides.block}"
        else:
            words = {"iterative": name, "blocked": f"blocked, pivot blocks of {side}", "recursive": f"recursive, base case of {side}"}[name]
        return f"{words}, by elimination" if self.eliminate else words

    @property
    def pinned(self) -> dict[str, Any]:
        """The arguments of a closure that repeats this plan, whatever memory is free."""
        device = self.devices[0] if len(self.devices) == 1 else list(self.devices)
        where = {} if self.problem.ranks else {"device": device}  # a rank takes the devices of its host
        return {"method": self.algorithm} | ({} if self.algorithm == "iterative" else {"block": self.block}) | where

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the title, and the names and values that Jupyter shows."""
        devices = ", ".join(self.devices)
        if self.problem.ranks:
            each = f"{len(self.devices)} GPUs" if len(self.devices) > 1 else "one GPU" if self.gpu else self.device
            devices = f"{each} on each of {self.problem.ranks} ranks"
        facts = [("device", devices)]
        time = "not predicted" if self.seconds is None or self.speed is None else duration(self.seconds)
        if self.strategy in ("product", "whole", "block rows"):
            if self.seconds is not None and self.speed is not None:
                time += f", at {step_rate(self.speed.steps)}"
            facts += [
                ("engine", self.outline.engine),
                ("method", self.method),
                ("tile", "none" if self.outline.tile is None else _line(self.outline.tile)),
                ("instructions", self.outline.instructions),
                ("block rows", "no, the matrix as a whole" if self.rows is None else str(self.rows)),
            ]
        else:
            facts.append(("method", f"{self.strategy}: {self.algorithm}"))
        facts += [
            ("time", time),
            ("memory", ", ".join(f"{format_bytes(size)} on {device}" for device, size in self.memory.items())),
        ]
        if self.strategy in ("whole", "block rows"):
            facts.append(("repeat with", ", ".join(f"{name}={value!r}" for name, value in self.pinned.items())))
        if self.spanning is not None:
            facts.append(("if symmetric", f"minimum spanning tree, {duration(self.spanning)}"))
        if len(self.considered) > 1:
            facts.append(("considered", ", ".join(f"{name} {duration(seconds)}" for name, seconds in self.considered)))
        return self._title(), [*facts, *(("note", note) for note in self.notes)]

    def _repr_html_(self) -> str:
        title, facts = self.facts()
        considered = [(name, seconds, duration(seconds)) for name, seconds in sorted(self.considered, key=lambda each: each[1])]
        rows = ((faint(name), bars(considered) if name == "considered" else escape(text)) for name, text in facts)
        return table(escape(title), rows)

    def _title(self) -> str:
        problem = self.problem
        where = f"over {self.semiring.name} in {', '.join(map(str, self.dtypes))}{' with paths' if self.paths else ''}"
        if problem.kind == "product":
            m, n = problem.shape[-2:]
            count = counted(problem.matrices, "product") if len(problem.shape) > 2 else "product"
            return f"{count} of {m:,} × {problem.depth:,} and {problem.depth:,} × {n:,} {where}"
        if problem.kind == "scan":
            steps, states = counted(problem.shape[-2], "step"), counted(self.n, "state")
            return f"{counted(problem.matrices, 'scan')} of {steps} of {states} {where}"
        graphs = f"{counted(problem.matrices, 'graph')} of " if len(problem.shape) > 2 else ""
        edges = "" if problem.edges is None else f" and {counted(problem.edges, 'edge')}"
        rows = "" if problem.searches is None else f", {counted(problem.searches, 'row')} of it,"
        return f"closure of {graphs}{counted(self.n, 'vertex', 'vertices')}{edges}{rows} {where}"

    def __repr__(self) -> str:
        title, facts = self.facts()
        return "\n".join([title, *(f"  {name:<12}  {text}" for name, text in facts)])


def _line(tile: Shown) -> str:
    title, facts = tile.facts()
    return f"{title}; {facts[0][0]}: {facts[0][1]}"
