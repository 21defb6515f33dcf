"""Settings of all tests."""

import functools
import importlib.util

import pytest
from hypothesis import settings

# The first example of a kind may compile a kernel.
settings.register_profile("semiring", deadline=None)
settings.load_profile("semiring")


@functools.cache
def _has_gpu() -> bool:
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    try:
        return bool(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `gpu` are for machines that have one."""
    for item in items:
        if item.get_closest_marker("gpu") and not _has_gpu():
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU"))
