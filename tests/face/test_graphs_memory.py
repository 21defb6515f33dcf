"""What is too large is refused before anything is allocated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import DISTANCE_HOPS, MIN_PLUS
from semiring.arrays import memory
from semiring.arrays.memory import require_memory
from semiring.common.errors import TooLargeError
from semiring.graphs import dense, edges, read_graph

GIB = 2**30
F4, F8 = np.dtype("f4"), np.dtype("f8")


@pytest.fixture
def four_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_on_host", lambda: 4 * GIB)


@pytest.mark.usefixtures("four_gib")
class TestRequireMemory:
    def test_what_fits(self) -> None:
        require_memory(32768, (F4,))
        require_memory(0, (F8,), via=True)
        require_memory(100, (F8,), batch=(1000,))

    def test_the_message_has_the_size_and_the_remedies(self) -> None:
        with pytest.raises(TooLargeError) as caught:
            require_memory(32768, (F8,))
        message = str(caught.value)
        assert "32,768 × 32,768 entries of float64 would take 8.0 GiB, but 4.0 GiB" in message
        assert "dtype=float32 or int32 (4.0 GiB)" in message
        assert "sources=" in message
        assert "component" in message

    @pytest.mark.parametrize(
        ("n", "dtypes", "via", "remedy"),
        [
            (32768, (F4,), True, "no paths (4.0 GiB)"),
            (20000, (F8,), True, "dtype=float32 or int32 (3.0 GiB)"),
            (30000, (F8,), True, "dtype=float32 or int32 and no paths (3.4 GiB)"),
        ],
    )
    def test_only_remedies_that_fit(self, n: int, dtypes: Any, via: bool, remedy: str) -> None:
        with pytest.raises(TooLargeError) as caught:
            require_memory(n, dtypes, via=via)
        assert f"what would work: {remedy}; one connected" in str(caught.value)

    def test_a_size_beyond_every_dtype(self) -> None:
        with pytest.raises(TooLargeError, match="what would work: one connected"):
            require_memory(1_000_000, (F8,), via=True)

    def test_components_and_batches_count(self) -> None:
        with pytest.raises(TooLargeError, match="float32 and float64"):
            require_memory(25000, (F4, F8))
        with pytest.raises(TooLargeError, match=r"3 × 2 dense matrices"):
            require_memory(16384, (F4,), batch=(3, 2))

    def test_on_a_gpu_the_setting_that_would_fit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(memory, "free_on_gpu", lambda number: 4 * GIB)
        require_memory(30000, (F4,), device="cuda:1")
        with pytest.raises(TooLargeError, match=r"of memory are available on cuda:1; what would work: dtype=float32 or int32 \(3\.5 GiB\)"):
            require_memory(30000, (F8,), device="cuda:1")
        with pytest.raises(TooLargeError, match=r"what would work: overwrite=True \(3\.5 GiB\); .*device='cpu'"):
            require_memory(30000, (F4,), via=True, device="cuda:1", overwriting_helps=True)

    def test_reading_refuses(self) -> None:
        sparse = pytest.importorskip("scipy.sparse")
        far = sparse.coo_array(([1.0], ([0], [1])), shape=(46341, 46341))
        with pytest.raises(TooLargeError, match=r"16\.0 GiB"):
            read_graph(far, MIN_PLUS)
        with pytest.raises(TooLargeError, match="construction matrix"):
            read_graph(edges([(0, 1)], nodes=range(30000)), MIN_PLUS, dtype=np.float32, paths=True)
        borrowed = np.broadcast_to(np.float64(1), (46341, 46341))
        with pytest.raises(TooLargeError):
            read_graph(borrowed, MIN_PLUS)
        with pytest.raises(TooLargeError):
            read_graph((borrowed, borrowed), DISTANCE_HOPS)

    def test_overwriting_needs_no_second_matrix(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(memory, "free_on_host", lambda: 0)
        for module in (memory, memory, dense):
            monkeypatch.setattr(module, "ALWAYS_FITS", 0)
        lent = np.ones((8, 8))
        assert read_graph(lent, MIN_PLUS, overwrite=True).owned
        with pytest.raises(TooLargeError):
            read_graph(lent, MIN_PLUS)
        with pytest.raises(TooLargeError):
            read_graph(lent, MIN_PLUS, overwrite=True, paths=True)


def test_an_unknown_amount_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_on_host", lambda: None)
    require_memory(10**6, (F8,))
