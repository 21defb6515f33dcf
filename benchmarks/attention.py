"""A tropical attention layer with its gradient, beside the same layer by PyTorch's broadcasting.

    python -m benchmarks.attention
    python -m benchmarks.attention --device cuda --sizes 128 256 512 1024

A size is the length of the sequences; there are 4 sequences × 8 heads of 64 numbers on a GPU, and 1 × 2 on the CPU. Scores are the Hilbert
metric between queries and keys, and the result is the largest sum of score and value. Times are whole calls in milliseconds, float32.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import semiring as sr
from benchmarks.measure import alternate, hardware, installed, machine, print_table

torch: Any = installed("torch")


def attention(queries: Any, keys: Any, values: Any) -> Any:
    """Three products over max-plus and min-plus."""
    apart = -keys.mT
    scores = sr.matmul(queries, apart, sr.MIN_PLUS) - sr.matmul(queries, apart, sr.MAX_PLUS)
    return sr.matmul(scores, values, sr.MAX_PLUS)


def broadcast(queries: Any, keys: Any, values: Any) -> Any:
    """The same through arrays of all terms."""
    apart = queries[..., :, None, :] - keys[..., None, :, :]
    scores = apart.amin(-1) - apart.amax(-1)
    return (scores[..., None] + values[..., None, :, :]).amax(-2)


def works(length: int, shape: tuple[int, int], device: str) -> dict[str, Callable[[], Any]]:
    """Forward and backward of both."""
    numbers = torch.Generator().manual_seed(length)
    given = [torch.randn(*shape, length, 64, generator=numbers).to(device).requires_grad_() for _ in range(3)]
    g = torch.randn(*shape, length, 64, generator=numbers).to(device)

    def both(layer: Callable[..., Any]) -> Callable[[], Any]:
        def run() -> Any:
            found = torch.autograd.grad(layer(*given), given, g)
            if device != "cpu":
                torch.cuda.synchronize()
            return found

        return run

    found = {"semiring": both(attention), "broadcast": both(broadcast)}
    for x, y in zip(found["semiring"](), found["broadcast"](), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-3, atol=1e-3)
    return found


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if torch is None:
        return
    print(f"{hardware(options.device) if options.device != 'cpu' else machine()}, PyTorch {torch.__version__}\n")
    rows, others, shape = [], 0.0, (1, 2) if options.device == "cpu" else (4, 8)
    for length in options.sizes:
        timings = alternate(works(length, shape, options.device), options.rounds)
        others = max(others, timings.others)
        times = [f"{1e3 * timings.median(name):,.2f}" for name in ("semiring", "broadcast")]
        rows.append((f"{length:,}", *times, f"{timings.ratio('broadcast', 'semiring'):.1f}"))
    print_table(("length", "semiring, ms", "broadcast, ms", "broadcast / semiring"), rows, others)


if __name__ == "__main__":
    main()
