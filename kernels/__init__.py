"""One semiring → one fast product on each engine. Knows no graph."""

from __future__ import annotations

from semiring.kernels.block import Block
from semiring.kernels.engine import Engine
from semiring.kernels.matmul import Witnessed, matmul
from semiring.kernels.select import engine_for

__all__ = ["Block", "Engine", "Witnessed", "engine_for", "matmul"]
