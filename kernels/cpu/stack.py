"""Stacks of matrices: where each of them lies, and the loop of compiled code that calls a kernel of single matrices for all of them.

The loop is for matrices which fill vectors by themselves; many that are smaller go to the lanes of vectors, see `lanes`.
"""

from __future__ import annotations

from semiring.kernels.cpu.emitter import STATUS, Array, Emitter, KernelArguments
from semiring.kernels.cpu.representation import Representation

__all__ = ["StackArguments", "stack_loop"]


class StackArguments(KernelArguments):
    """Those of a stack: behind them, for each of its leading `axes`, its length and how many elements matrices lie apart in each array."""

    def __init__(self, components: int) -> None:
        super().__init__(components)
        self.arrays: list[Array] = [*((name, c) for c in range(components) for name in "ABC"), "via"]

    def offsets(self, em: Emitter, number: str) -> list[str]:
        """How many elements behind the first one a matrix begins in each array."""
        axes, size = self.load(em, "axes"), 1 + len(self.arrays)

        def moved(axis: str | int, step: str, offsets: list[str]) -> list[str]:
            words = em.at("i64", "%args", em.add(em.mul(axis, size), len(self.index) + 1))
            return [str(em.add(x, em.mul(step, em.load("i64", em.at("i64", words, i), 8)))) for i, x in enumerate(offsets)]

        def inner(turn: str, carried: list[str]) -> list[str]:
            rest, *offsets = carried
            axis = em.sub(axes, turn)
            length = em.load("i64", em.at("i64", "%args", em.add(em.mul(axis, size), len(self.index))), 8)
            whole = em.let(f"sdiv i64 {rest}, {length}")
            return [whole, *moved(axis, str(em.sub(rest, em.mul(whole, length))), offsets)]

        rest, *offsets = em.loop(1, axes, 1, inner, [("i64", number), *(("i64", "0") for _ in self.arrays)])
        return moved(0, rest, offsets)


def stack_loop(rep: Representation, name: str) -> Emitter:
    """``product_stack(args)``, which calls ``product`` for each matrix, and the like; it ends where the pivot of one diverges."""
    em, args = Emitter(f"{name}_stack", "ptr %args"), StackArguments(len(rep.outer))
    count = len(args.index)
    own = em.let(f"alloca [{count} x i64], align 64")
    em.loop(0, count, 1, lambda i, _: em.store("i64", em.load("i64", em.at("i64", "%args", i), 8), em.at("i64", own, i), 8))

    def matrix(number: str, _: list[str]) -> None:
        for x, offset in zip(args.arrays, args.offsets(em, number), strict=True):
            ir = "i32" if x == "via" else rep.outer[int(x[1])].ir
            em.store("ptr", em.at(ir, args.pointer(em, x), offset), em.at("i64", own, args.index[x]), 8)
        em.line(f"call void @{name}(ptr {own})")
        status = em.load("i64", em.at("i64", own, STATUS), 8)
        em.store("i64", status, em.at("i64", "%args", STATUS), 8)
        em.returning(em.let(f"icmp sge i64 {status}, 0"))

    em.loop(args.load(em, "start"), args.load(em, "stop"), 1, matrix)
    em.line("ret void")
    return em
