"""Settings of all tests."""

import pytest
from hypothesis import settings

from semiring.kernels.select import gpus

# The first example of a kind may compile a kernel.
settings.register_profile("semiring", deadline=None)
settings.load_profile("semiring")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `gpu` are for machines that have one."""
    for item in items:
        if item.get_closest_marker("gpu") and not gpus():
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU"))
