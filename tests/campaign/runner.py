"""Rounds of cases, the processes that run them, the watch for crashes and hangs, and the summary."""

from __future__ import annotations

import faulthandler
import functools
import multiprocessing
import os
import time
import traceback
from collections import Counter
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import numpy as np

from tests.campaign import (
    closures,
    commands,
    contracted,
    distances,
    drop_in,
    exact,
    factors,
    figures,
    gradients,
    kills,
    products,
    residues,
    scans,
    sparse,
    walks,
    wrapping,
    written_graphs,
)  # fmt: skip
from tests.campaign.cases import Case, Complaint, Entry, Unjudged
from tests.campaign.lawful import draw_catalogue, draw_lawful
from tests.campaign.shrinking import shrunk
from tests.campaign.subjects import Subject
from tests.campaign.written import draw_tuples, draw_written

__all__ = ["ENTRIES", "Finding", "case_of", "complaint_of", "investigate", "run"]

ENTRIES: dict[str, Entry] = {
    **products.ENTRIES,
    **sparse.ENTRIES,
    **contracted.ENTRIES,
    **distances.ENTRIES,
    **wrapping.ENTRIES,
    **residues.ENTRIES,
    **gradients.ENTRIES,
    **scans.ENTRIES,
    **closures.ENTRIES,
    **factors.ENTRIES,
    **figures.ENTRIES,
    **walks.ENTRIES,
    **drop_in.ENTRIES,
    **exact.ENTRIES,
    **commands.ENTRIES,
    **written_graphs.ENTRIES,
}

APART: dict[str, tuple[int, Entry]] = {"kill": (1000, kills.KILL), "command line": (500, commands.COMMAND_LINE)}
"""Entries in processes of their own: one case of so many is theirs."""


class Rounds(NamedTuple):
    """How many cases share a pool of how many subjects: a kernel of a GPU takes seconds to compile."""

    cases: int
    subjects: int


_ROUNDS = {"cpu": Rounds(400, 8), "cuda": Rounds(2000, 4)}

_PATIENCE = {"cpu": 120.0, "cuda": 300.0}
"""Seconds after which a case hangs."""

_ENOUGH, _ALIKE = 20, 2
"""Kinds of findings after which it stops, and how many of one kind are told in full."""


class Finding(NamedTuple):
    """What went wrong in a case."""

    number: int
    entry: str
    complaint: Complaint
    shrunk: str


def _kind(device: str) -> str:
    return "cuda" if device.startswith("cuda") else "cpu"


def _draw_subject(rng: np.random.Generator) -> Subject:
    """A subject of any family."""
    kinds = (draw_catalogue, draw_lawful, draw_written, draw_tuples)
    return kinds[rng.choice(4, p=[0.45, 0.2, 0.2, 0.15])](rng)


@functools.lru_cache(maxsize=4)
def _pool(seed: int, number: int, device: str) -> list[Subject]:
    """The subjects of a round."""
    rng = np.random.default_rng([seed, 0, number])
    return [_draw_subject(rng) for _ in range(_ROUNDS[_kind(device)].subjects)]


def case_of(seed: int, number: int, device: str = "cpu") -> Case:
    """The case of a number: of the seed and of nothing else."""
    pool = _pool(seed, number // _ROUNDS[_kind(device)].cases, device)
    rng = np.random.default_rng([seed, 1, number])
    for period, entry in APART.values():
        if number % period == period - 1:
            case = entry.draw(rng, pool[0], device)
            assert case is not None
            return case
    shares = np.array([e.share for e in ENTRIES.values()])
    while True:
        entry = [*ENTRIES.values()][rng.choice(len(shares), p=shares / shares.sum())]
        case = entry.draw(rng, pool[rng.integers(len(pool))], device)
        if case is not None:
            return case


def complaint_of(case: Case) -> Complaint | None:
    """What is wrong with a case, or None. A fault of the campaign itself is one too."""
    entry = ENTRIES.get(case.entry) or APART[case.entry][1]
    try:
        return entry.check(case)
    except Unjudged:
        return None
    except Exception as error:
        return Complaint(f"campaign {type(error).__name__}", "the campaign itself failed: " + "".join(traceback.format_exception(error)))


def investigate(case: Case, complaint: Complaint, number: int) -> Finding:
    """A finding with its smallest case."""
    small, said = (case, complaint) if case.entry in APART else shrunk(case, complaint, complaint_of)
    return Finding(number, case.entry, said, f"{small}\n  → {said.text}")


# Processes.


class _Watched(NamedTuple):
    """A process, and what it is doing: the number of its case and when it began, or −1."""

    process: Any
    results: Connection
    number: Any
    begun: Any


def _work(seed: int, device: str, first: int, step: int, deadline: float, results: Connection, number: Any, begun: Any) -> None:
    """Every step-th round from the first on, until the deadline; what happened is sent now and then."""
    faulthandler.enable()
    os.environ.setdefault("SEMIRING_NUM_THREADS", "1")
    np.seterr(all="ignore")
    size = _ROUNDS[_kind(device)].cases
    tally, sent, alike = Counter[str](), time.monotonic(), Counter[tuple[str, str]]()
    round_ = first
    while time.monotonic() < deadline:
        for i in range(round_ * size, (round_ + 1) * size):
            start = time.monotonic()
            if start > deadline:
                break
            number.value, begun.value = i, start
            case = case_of(seed, i, device)
            complaint = complaint_of(case)
            spent = time.monotonic() - start
            apart = case.entry in APART
            tally[f"seconds {'apart' if apart else 'together'}"] += spent  # type: ignore[assignment]  # a Counter counts seconds as well
            tally[f"entry {case.entry}"] += 1
            if not apart:
                tally["cases"] += 1
                tally[f"semiring {case.subject.family}"] += 1
                tally[f"dtype {'/'.join(dict.fromkeys(map(str, case.subject.dtypes)))}"] += 1
            if complaint is not None:
                begun.value = time.monotonic()
                alike[case.entry, complaint.kind] += 1
                again = alike[case.entry, complaint.kind] > _ALIKE
                results.send(Finding(i, case.entry, complaint, "") if again else investigate(case, complaint, i))
            if time.monotonic() - sent > 1:
                results.send(tally)
                tally, sent = Counter[str](), time.monotonic()
        round_ += step
        number.value = -1
    results.send(tally)
    results.close()


def run(seconds: float, seed: int, device: str, workers: int) -> int:
    """Run cases for some seconds, and tell; how many findings there were."""
    context = multiprocessing.get_context("spawn")
    deadline = time.monotonic() + seconds
    size, command = _ROUNDS[_kind(device)].cases, f"python -m tests.campaign --seed {seed}"
    suffix = "" if device == "cpu" else f" --device {device}"
    print(f"campaign: {command.replace(' --seed', f' {seconds:g} --seed')}{suffix}", flush=True)
    tally, findings, alike = Counter[str](), [], Counter[tuple[str, ...]]()

    def start(first: int) -> _Watched:
        receiver, sender = context.Pipe(duplex=False)
        number, begun = context.Value("q", -1), context.Value("d", time.monotonic())
        process = context.Process(target=_work, args=(seed, device, first, workers, deadline, sender, number, begun), daemon=False)
        process.start()
        sender.close()
        return _Watched(process, receiver, number, begun)

    def tell(finding: Finding) -> None:
        findings.append(finding)
        key = (finding.entry, finding.complaint.kind)
        alike[key] += 1
        if alike[key] <= _ALIKE:
            print(f"\nFINDING {len(findings)}, {finding.entry}: {finding.complaint.kind}\n  {command} --case {finding.number}{suffix}")
            print(f"  {finding.shrunk}", flush=True)
        elif alike[key] == _ALIKE + 1:
            print(f"\nmore of {' '.join(key)}; only counted from here on, first {command} --case {finding.number}{suffix}", flush=True)

    began = time.monotonic()
    running = [start(first) for first in range(workers)]
    while running and len(alike) < _ENOUGH:
        for connection in wait([w.results for w in running], timeout=1):
            watched = next(w for w in running if w.results is connection)
            try:
                message = watched.results.recv()
            except (EOFError, OSError):
                watched.process.join()
                running.remove(watched)
                if watched.process.exitcode:
                    tell(_lost(watched, f"ended with {watched.process.exitcode}: a crash"))
                    running.append(start(max(watched.number.value, 0) // size + workers))
                continue
            if isinstance(message, Finding):
                tell(message)
            else:
                tally.update(message)
        for watched in [w for w in running if time.monotonic() - w.begun.value > _PATIENCE[_kind(device)]]:
            watched.process.kill()
            watched.process.join()
            running.remove(watched)
            tell(_lost(watched, f"did not end within {_PATIENCE[_kind(device)]:g} s: a hang"))
            running.append(start(max(watched.number.value, 0) // size + workers))
    for watched in running:
        watched.process.kill()
        watched.process.join()
    _summarise(tally, findings, time.monotonic() - began, workers)
    return len(findings)


def _lost(watched: _Watched, what: str) -> Finding:
    return Finding(watched.number.value, "process", Complaint(what.rpartition(" ")[2], what), f"the process {what}")


def _summarise(tally: Counter[str], findings: list[Finding], seconds: float, workers: int) -> None:
    cases, apart = tally["cases"], tally["seconds apart"] / workers

    def counts(kind: str) -> str:
        found = sorted(((n, key.partition(" ")[2]) for key, n in tally.items() if key.startswith(f"{kind} ")), reverse=True)
        return ", ".join(f"{name} {n:,}" for n, name in found)

    rate = cases / max(seconds - apart, 1e-9)
    print(f"\n{cases:,} cases in {seconds:.0f} s, {rate:.0f} a second on {workers} process{'es' * (workers > 1)} "
          f"beside {apart:.0f} s for those in processes of their own")  # fmt: skip
    for kind, title in (("entry", "entry points"), ("semiring", "semirings"), ("dtype", "dtypes")):
        print(f"  {title}: {counts(kind)}")
    print(f"  findings: {len(findings)}", flush=True)
