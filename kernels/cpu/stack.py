"""Stacks of matrices, one after the other: a kernel of single matrices is called in a loop of compiled code.

That is for matrices which fill vectors by themselves; many that are smaller go to the lanes of vectors, see `lanes`.
"""

from __future__ import annotations

from semiring.kernels.cpu.emitter import STATUS, Emitter, StackArguments
from semiring.kernels.cpu.representation import Representation

__all__ = ["stack_loop"]


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
