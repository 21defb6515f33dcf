"""A backend that finds all rows itself, also the first ones, which NetworkX finds otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from semiring.networkx_backend import paths


@pytest.fixture(scope="module")
def no_first_rows() -> Iterator[None]:
    def none(*_: Any) -> Any:
        return 0, 0
        yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "_first_rows", none)
        yield
