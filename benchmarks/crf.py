"""The log-likelihoods of conditional random fields by `scan`, with gradients, beside a loop over time in PyTorch.

    python -m benchmarks.crf
    python -m benchmarks.crf --batch 16 --steps 1000 --states 32 --threads 1
    python -m benchmarks.crf --device cuda

Times are whole calls in milliseconds, float32, with random normal scores and one matrix of transitions for all steps.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import semiring as sr
from benchmarks.measure import alternate, hardware, installed, machine, print_table

torch: Any = installed("torch")


def by_scan(switch: Any, scores: Any, threads: int | None) -> Any:
    """The logarithm of the sum over all paths, of each sequence."""
    return sr.scan(switch, sr.LOG, scores[:, 0], weights=scores[:, 1:], last=True, threads=threads).logsumexp(-1)


def by_loop(switch: Any, scores: Any) -> Any:
    """The same, step by step."""
    vector = scores[:, 0]
    for t in range(1, scores.shape[1]):
        vector = (vector[:, :, None] + switch).logsumexp(1) + scores[:, t]
    return vector.logsumexp(-1)


def by_best(switch: Any, scores: Any, threads: int | None) -> Any:
    """The score of the best path of each sequence."""
    return sr.scan(switch, sr.MAX_PLUS, scores[:, 0], weights=scores[:, 1:], last=True, threads=threads).amax(-1)


def works(batch: int, steps: int, states: int, device: str, threads: int | None) -> dict[str, Callable[[], Any]]:
    """The scan alone, and forward and backward of ours and theirs."""
    numbers = torch.Generator().manual_seed(states)
    switch, scores = (torch.randn(*shape, generator=numbers).to(device) for shape in ((states, states), (batch, steps + 1, states)))
    own = [x.clone().requires_grad_() for x in (switch, scores)]

    def timed(work: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            found = work()
            if device != "cpu":
                torch.cuda.synchronize()
            return found

        return run

    def both(likelihood: Callable[[Any, Any], Any]) -> Callable[[], Any]:
        return timed(lambda: torch.autograd.grad(likelihood(*own).sum(), own))

    found = {
        "forward": timed(lambda: by_scan(switch, scores, threads)),
        "both": both(lambda a, w: by_scan(a, w, threads)),
        "Viterbi": both(lambda a, w: by_best(a, w, threads)),
        "PyTorch": both(by_loop),
    }
    for x, y in zip(found["both"](), found["PyTorch"](), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-2, atol=1e-3)
    return found


def compare(batch: int, steps: int, states: Sequence[int], device: str, threads: int | None, rounds: int) -> None:
    """A table of whole calls."""
    rows, others = [], 0.0
    for s in states:
        timings = alternate(some := works(batch, steps, s, device, threads), rounds)
        others = max(others, timings.others)
        rows.append((f"{batch} × {steps:,} × {s}", *(f"{1e3 * timings.median(work):,.2f}" for work in some)))
    names = "forward", "forward + backward", "Viterbi, both", "PyTorch's loop, both"
    print_table(("sequences × steps × states", *(f"{name}, ms" for name in names)), rows, others)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--states", type=int, nargs="+", default=[32])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, help="threads of PyTorch and of this library")
    options = parser.parse_args()
    if torch is None:
        return
    if options.threads:
        torch.set_num_threads(options.threads)
    print(f"{hardware(options.device) if options.device != 'cpu' else machine()}, PyTorch {torch.__version__}\n")
    compare(options.batch, options.steps, options.states, options.device, options.threads, options.rounds)


if __name__ == "__main__":
    main()
