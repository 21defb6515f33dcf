"""What the tests of the kernels share."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Object code that the tests generate goes to a folder of their own: there is much of it, and nobody needs it again."""
    before = os.environ.get("SEMIRING_CACHE_DIR")
    os.environ["SEMIRING_CACHE_DIR"] = str(tmp_path_factory.mktemp("kernels"))
    yield
    if before is None:
        del os.environ["SEMIRING_CACHE_DIR"]
    else:
        os.environ["SEMIRING_CACHE_DIR"] = before
