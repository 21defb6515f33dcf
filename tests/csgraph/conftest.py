"""Small sparse graphs both ways: searched at once, and by a plan as larger ones are."""

from collections.abc import Iterator

import pytest

from semiring.csgraph import solving
from semiring.kernels.machine import FEW_STEPS


@pytest.fixture(scope="module", params=[FEW_STEPS, 0], ids=["at once", "by a plan"])
def small_graphs(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solving, "FEW_STEPS", request.param)
        yield
