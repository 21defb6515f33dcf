"""The arguments of a generated kernel: one array of 64-bit words, named here once for the generator and the caller."""

from __future__ import annotations

from semiring.kernels.cpu.emitter import Emitter, Scalar

__all__ = ["SHARED", "Arguments"]

SHARED = (
    "m", "n", "k", "first", "hold_a", "hold_b", "fresh", "threshold", "one_f4", "one_f8", "packed_a", "packed_b", "via", "via_rows",
    "transposed", "transposed_rows", "status",
)  # fmt: skip
"""The words that do not belong to a matrix."""


class Arguments:
    """Names of the words of a kernel's argument array.

    Per-matrix words carry a component: ``("A", 0)`` is the address of the left operand's first component, ``("A.rows", 0)`` and
    ``("A.columns", 0)`` its strides in elements.
    """

    def __init__(self, components: int) -> None:
        names: list[str | tuple[str, int]] = [*SHARED]
        for c in range(components):
            for matrix in "ABC":
                names += [(matrix, c), (f"{matrix}.rows", c), (f"{matrix}.columns", c)]
        self.index = {name: i for i, name in enumerate(names)}

    def load(self, em: Emitter, name: str | tuple[str, int]) -> str:
        """The word as i64."""
        return em.load("i64", em.at("i64", "%args", self.index[name]), 8)

    def pointer(self, em: Emitter, name: str | tuple[str, int]) -> str:
        """The word as an address."""
        return em.load("ptr", em.at("i64", "%args", self.index[name]), 8)

    def ones(self, em: Emitter, scalars: set[Scalar], width: int) -> dict[Scalar, str]:
        """Vectors of 1.0 that are known only at run time, so that LLVM does not fold fma(x, 1, y) back to a sum."""
        found = {}
        for scalar in sorted(s for s in scalars if s.kind == "f"):
            one = em.load(scalar.ir, em.at("i64", "%args", self.index[f"one_f{scalar.bytes}"]), scalar.bytes)
            found[scalar] = em.splat(one, scalar, width)
        return found
