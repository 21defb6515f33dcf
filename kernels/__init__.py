"""One semiring → one fast product on each engine. Knows no graph."""

from __future__ import annotations

from typing import Any

from semiring.algebra.definition import Semiring
from semiring.algebra.html import Code
from semiring.kernels.block import Block
from semiring.kernels.engine import Engine
from semiring.kernels.matmul import Witnessed, matmul
from semiring.kernels.select import engine_for

__all__ = ["Block", "Engine", "Witnessed", "engine_for", "matmul", "source"]


def source(semiring: Semiring, dtype: Any, **options: Any) -> Code:
    """The CUDA C++ that is generated for a semiring; see `semiring.kernels.cuda.show.source`."""
    from semiring.kernels.cuda.show import source as show

    return show(semiring, dtype, **options)
