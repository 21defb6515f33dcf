"""What a closure takes on a cluster: the model that `explain` prints, beside a simulation of the schedule with jitter and a slow rank.

    python -m benchmarks.cluster                       # 1 to 64 nodes of 8 GPUs each
    python -m benchmarks.cluster --jitter 0.05 --slow 0.2

Nothing runs on a GPU: a step takes what `kernels.machine` says of an NVIDIA H200, and a row panel what was measured within a host and is
assumed of the network between hosts. The simulation follows every device through its block rows: it waits for row panels, which come one
after the other, each when its owner has made it and all devices are through with the one before the last.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

import semiring as sr
from semiring.common.units import duration, format_bytes
from semiring.planning import Plan

NODES, GPUS = (1, 2, 4, 8, 16, 32, 64), 8


@dataclass(frozen=True)
class Disturbance:
    """How far devices are from all being the same: the relative spread of each update, and by how much one rank is slower."""

    jitter: float
    slow: float


def planned(n: int, nodes: int, block: int) -> Plan:
    """One rank a GPU on so many nodes."""
    return sr.explain(n, dtype="float32", ranks=nodes * GPUS, beside=GPUS, gpus=1, block=block)


def simulated(plan: Plan, disturbance: Disturbance) -> float:
    """Seconds of the rounds of a plan."""
    rows = plan.rows
    assert rows is not None
    assert rows.transport is not None
    rng = np.random.default_rng(0)
    n, b, count, devices = rows.n, rows.side, len(rows.rows), rows.devices
    update, close, panel = n * b**2 / rows.speed.steps, 2 * b**3 / rows.speed.steps, rows.transport.seconds(rows.panel_bytes)
    pace = np.ones(devices)
    pace[: len(plan.devices)] += disturbance.slow  # the first rank

    def takes(device: int, updates: int) -> float:
        spread = rng.normal(0.0, disturbance.jitter * updates**0.5) if disturbance.jitter else 0.0
        return float(pace[device] * update * max(0.0, updates + spread))

    clock = np.zeros(devices)
    released = np.zeros(3)  # when all devices were through with a panel, of the last three
    made = takes(0, 1) + close
    sent = 0.0
    owned = [len(range(device, count, devices)) for device in range(devices)]
    for k in range(count):
        sent = max(made, sent, released[(k - 2) % 3]) + panel
        begin = np.maximum(clock, sent)
        begin[k % devices] = max(clock[k % devices], made)  # its owner has the panel already
        for device in range(devices):
            left = owned[device] - (k % devices == device)
            if k + 1 < count and (k + 1) % devices == device:
                begin[device] += takes(device, 2) + close  # the next row panel first: its update, its pivot block, the rest of it
                made, left = begin[device], left - 1
            clock[device] = begin[device] + takes(device, left)
        released[k % 3] = clock.max()
    return float(clock.max())


def main() -> None:
    """Print a table for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jitter", type=float, default=0.03)
    parser.add_argument("--slow", type=float, default=0.0)
    given = parser.parse_args()
    for n in (131_072, 300_000, 1_000_000):
        print(f"\nn = {n:,}, float32\n\n| nodes | block | predicted | simulated | disturbed | products alone | to each host | limited by |")
        print("|---:|---:|---:|---:|---:|---:|---:|---|")
        for nodes in NODES:
            plans = [planned(n, nodes, block) for block in (512, 1024, 2048, 4096)]
            best = min(plans, key=lambda plan: plan.seconds or 0)
            rows = best.rows
            assert rows is not None
            still, disturbed = simulated(best, Disturbance(0, 0)), simulated(best, Disturbance(given.jitter, given.slow))
            ideal = n**3 / (rows.devices * rows.speed.steps)
            bound = "products" if rows.chained <= rows.computing else "the chain of row panels"
            times = " | ".join(map(duration, (best.seconds or 0, still, disturbed, ideal)))
            print(f"| {nodes} | {best.block:,} | {times} | {format_bytes(rows.received)} | {bound} |")


if __name__ == "__main__":
    main()
