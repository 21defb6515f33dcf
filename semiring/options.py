"""The arguments that every closure takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from semiring.progress import Progress

__all__ = ["Options"]


class Options(NamedTuple):
    """The arguments that every closure takes, in their order and with their defaults; see `semiring.apsp`."""

    paths: bool = False
    method: str = "auto"
    block: int | None = None
    nonedge: Any = None
    dtype: Any = None
    device: Any = "auto"
    overwrite: bool = False
    threads: int | None = None
    memory_limit: int | str | None = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: Callable[[Progress], None] | bool | None = None
    sources: Any = None
    targets: Any = None
    check: bool = True

    @property
    def needs_block_rows(self) -> bool:
        """Whether the caller wants what only a closure by block rows can give."""
        return self.memory_limit is not None or self.checkpoint is not None
