"""Numbers that stand for calls where PyTorch and JAX compile: operators of these libraries take no objects."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import fields, is_dataclass
from typing import Any

from semiring.algebra.carrier import Predicate
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import Expr, flat
from semiring.common import forks
from semiring.common.errors import GraphError

__all__ = ["Numbering"]


class Numbering(dict[int, Any]):
    """Calls by their numbers; calls that mean the same share a number.

    No call is ever dropped: a compiled function has the number alone, and nobody tells when the last such function is gone.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock, self._meanings = forks.lock(), dict[int, str]()

    def number(self, call: Any) -> int:
        """Return the number of a call: equal in all processes, because both libraries store compiled functions on disk."""
        meaning = repr(_meaning(call))
        number = int.from_bytes(hashlib.blake2b(meaning.encode(), digest_size=7).digest(), "little")
        with self._lock:
            while self._meanings.setdefault(number, meaning) != meaning:
                number += 1
            self.setdefault(number, call)
        return number

    def __missing__(self, number: int) -> Any:
        raise GraphError("the function was compiled in another process, and this process has not made the call; compile the function again")


def _meaning(x: Any) -> Any:
    """Return a value whose text tells calls apart, and is the same in all processes."""
    if isinstance(x, Semiring):
        star = x.recordings.get("star")
        operations = x.program.add, x.program.mul, () if star is None else (*star.results, star.undefined), x.recorded_from_weight
        return x.name, *map(flat, operations), x.zero, x.one, _meaning(x.carrier), x.witness
    if isinstance(x, Predicate):
        return repr(x.function) if x.recorded is None else flat((x.recorded,))
    if isinstance(x, Expr):
        return flat((x,))
    if isinstance(x, functools.partial):
        return _meaning((x.func, *x.args, *x.keywords.items()))
    if isinstance(x, tuple | list):
        return type(x).__name__, *map(_meaning, x)
    if is_dataclass(x):
        return type(x).__name__, *(_meaning(getattr(x, field.name)) for field in fields(x))
    return getattr(x, "__qualname__", x)
