"""Products of PyTorch's tensors with gradients, beside PyTorch's own gradients through an array of all m·k·n terms, and tropical-gemm's.

    python -m benchmarks.gradients
    python -m benchmarks.gradients --sizes 64 512 --threads 1
    python -m benchmarks.gradients --device cuda --sizes 64 512 1024 4096

Times are whole warm calls in milliseconds, float32, with random normal entries: the mean of some calls one after the other. On a GPU
PyTorch runs backward passes in another thread, unless `torch.autograd.set_multithreading_enabled(False)` says "one thread".
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import semiring as sr
from benchmarks.measure import alternate, hardware, installed, machine, print_table

torch: Any = installed("torch")
tropical_gemm: Any = installed("tropical_gemm.pytorch") if installed("tropical_gemm") else None

SEMIRINGS: dict[str, tuple[sr.Semiring, Callable[[Any, Any], Any]]] = {
    "min-plus": (sr.MIN_PLUS, lambda a, b: (a[:, :, None] + b[None]).amin(1)),
    "max-times": (sr.MAX_TIMES, lambda a, b: (a[:, :, None] * b[None]).amax(1)),
    "log": (sr.LOG, lambda a, b: (a[:, :, None] + b[None]).logsumexp(1)),
    "plus-times": (sr.PLUS_TIMES, lambda a, b: a @ b),
}
"""Semirings, and the same product by PyTorch."""

PEERS = {"min-plus": "minplus", "max-times": "maxmul"}
"""Semirings of tropical-gemm, by its names."""


COLUMNS = ("forward", "both", "one thread", "PyTorch", "tropical-gemm")


def works(name: str, n: int, device: str, threads: int | None, *, broadcast: bool) -> dict[str, Callable[[], Any]]:
    """The product alone, and forward and backward of ours and theirs."""
    semiring, theirs = SEMIRINGS[name]
    numbers = torch.Generator().manual_seed(n)
    a, b, g = (torch.randn(n, n, generator=numbers).to(device) for _ in range(3))
    if name == "max-times":
        a, b = a.abs(), b.abs()
    left, right = a.clone().requires_grad_(), b.clone().requires_grad_()

    def both(product: Callable[[Any, Any], Any]) -> Callable[[], Any]:
        def run() -> Any:
            found = torch.autograd.grad(product(left, right), (left, right), g)
            if device != "cpu":
                torch.cuda.synchronize()
            return found

        return run

    def forward() -> None:
        sr.matmul(a, b, semiring, threads=threads)
        if device != "cpu":
            torch.cuda.synchronize()

    peer = getattr(tropical_gemm, f"tropical_{PEERS[name]}_matmul", None) if name in PEERS and device == "cpu" else None
    own = both(lambda a, b: sr.matmul(a, b, semiring, threads=threads))

    def one_thread() -> None:
        with torch.autograd.set_multithreading_enabled(False):
            own()

    found: dict[str, Callable[[], Any]] = {"forward": forward, "both": own}
    if device != "cpu":  # else both passes run in one thread anyway
        found["one thread"] = one_thread
    if broadcast or name == "plus-times":
        found["PyTorch"] = both(theirs)
    if peer is not None:
        found["tropical-gemm"] = both(peer)
    for other in [work for work in found if work not in ("forward", "both", "one thread")]:
        for x, y in zip(found["both"](), found[other](), strict=True):
            torch.testing.assert_close(x, y, rtol=1e-3, atol=1e-3)
    return found


def repeated(call: Callable[[], Any], calls: int) -> Callable[[], Any]:
    """Return a work of several calls."""

    def run() -> None:
        for _ in range(calls):
            call()

    return run


def compare(sizes: Sequence[int], device: str, threads: int | None, largest: int, rounds: int) -> None:
    """A table of whole calls."""
    rows, others = [], 0.0
    for name in SEMIRINGS:
        for n in sizes:
            some = works(name, n, device, threads, broadcast=n <= largest)
            calls = max(1, 2**14 // n) if device != "cpu" and n <= 1024 else 1
            timings = alternate({work: repeated(call, calls) for work, call in some.items()}, rounds)
            others = max(others, timings.others)
            times = [f"{1e3 * timings.median(work) / calls:,.3f}" if work in some else "–" for work in COLUMNS]
            rows.append((name, f"{n:,}", *times, f"{timings.ratio('both', 'forward'):.2f}"))
    names = "forward", "forward + backward", "… in one thread", "PyTorch, both", "tropical-gemm, both"
    print_table(("semiring", "n", *(f"{name}, ms" for name in names), "both / forward"), rows, others, keys=2)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 512, 1024])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--largest", type=int, default=512, help="largest n of PyTorch's array of all terms")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, help="threads of PyTorch and of this library")
    options = parser.parse_args()
    if torch is None:
        return
    if options.threads:
        torch.set_num_threads(options.threads)
    print(f"{hardware(options.device) if options.device != 'cpu' else machine()}, PyTorch {torch.__version__}\n")
    compare(options.sizes, options.device, options.threads, options.largest, options.rounds)


if __name__ == "__main__":
    main()
