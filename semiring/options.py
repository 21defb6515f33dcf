"""The arguments that every closure takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from semiring.progress import Progress

__all__ = ["Options"]


class Options(NamedTuple):
    """The arguments that every closure takes; see `semiring.apsp`."""

    paths: bool
    method: str
    block: int | None
    nonedge: Any
    dtype: Any
    device: Any
    overwrite: bool
    threads: int | None
    memory_limit: int | str | None
    checkpoint: str | os.PathLike[str] | None
    progress: Callable[[Progress], None] | bool | None
    sources: Any = None
    targets: Any = None
