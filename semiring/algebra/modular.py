"""Numbers modulo p: recognition of ⊕ as (a + b) mod p with ⊗ as (a · b) mod p, for one constant p, and primes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from semiring.algebra.expression import Expr, is_operation

__all__ = ["MOST", "is_prime", "modulus"]

MOST = 2**31 - 1
"""The largest modulus: a product of two elements, and a sum with another one, fit int64."""


def modulus(add: Sequence[Expr], mul: Sequence[Expr]) -> int | None:
    """Return the p for which ⊕ is ``(a + b) % p`` and ⊗ is ``a * b % p``; None without such a p.

    >>> from semiring.algebra.catalogue import modular
    >>> program = modular(7).program
    >>> modulus(program.add, program.mul)
    7
    """
    if len(add) != 1 or add[0].op != "mod" or mul[0].op != "mod":
        return None
    (total, p), (product, q) = add[0].args, mul[0].args
    if p is not q or not is_operation(total, ("add",)) or not is_operation(product, ("mul",)):
        return None
    value = p.args[0] if p.op == "const" else None
    return value if type(value) is int and 2 <= value <= MOST else None


def is_prime(p: int) -> bool:
    """Return True for a prime p ≥ 2, by trial division.

    >>> [p for p in range(2, 20) if is_prime(p)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    return all(p % d for d in range(2, math.isqrt(p) + 1))
