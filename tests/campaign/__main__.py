"""``python -m tests.campaign SECONDS [--seed S] [--device cuda]``, or ``--seed S --case K`` for one case again."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Sequence

import numpy as np

from tests.campaign.runner import case_of, complaint_of, investigate, run


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description="Random cases, each compared with an independent answer.")
    parser.add_argument("seconds", type=float, nargs="?", default=60.0, help="how long (60)")
    parser.add_argument("--seed", type=int, default=None, help="by default a new one, which is printed")
    parser.add_argument("--case", type=int, default=None, metavar="K", help="run the case of this number alone, and print it in full")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    if options.case is None:
        return 1 if run(options.seconds, seed, options.device, options.workers) else 0
    os.environ.setdefault("SEMIRING_NUM_THREADS", "1")
    with np.errstate(all="ignore"):
        case = case_of(seed, options.case, options.device)
        print(case, flush=True)
        complaint = complaint_of(case)
        if complaint is None:
            print("  → as it should be")
            return 0
        print(f"  → {complaint.text}\n\nshrunk:", flush=True)
        print(investigate(case, complaint, options.case).shrunk)
        return 1


if __name__ == "__main__":
    sys.exit(main())
