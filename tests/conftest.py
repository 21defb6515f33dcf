"""Settings of all tests."""

import contextlib
import functools
import importlib
import os
import time
from collections import defaultdict

import pytest
from hypothesis import settings

from semiring.arrays import devices, memory
from semiring.arrays.devices import gpus
from semiring.arrays.threads import thread_count
from semiring.kernels import machine
from semiring.kernels.cpu import loops

collect_ignore = ["mpi/program.py", "mpi/sparse.py"]  # ranks run them; to collect doctests of them would initialize MPI

# Whoever looks at a failed test wants to see where inside the library it failed.
os.environ.setdefault("SEMIRING_TRACEBACK", "full")

# Functions that JAX traces compute on the CPU alone. On a GPU, JAX would reserve most of the memory for itself.
os.environ.setdefault("JAX_DEFAULT_DEVICE", "cpu")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

loops.checking = True

# The first example of a kind may compile a kernel.
settings.register_profile("semiring", deadline=None, max_examples=20)
settings.load_profile("semiring")


def pytest_configure(config: pytest.Config) -> None:
    """Kernels that tests compile are kept with what pytest keeps, for all of its processes and for its next runs, for a week."""
    cache = getattr(config, "cache", None)  # which `-p no:cacheprovider` leaves out
    if "SEMIRING_CACHE_DIR" not in os.environ and cache is not None:
        folder = cache.mkdir("kernels")
        folder.chmod(0o700)  # one that others may write to is not trusted
        for file in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process may remove it
                if file.stat().st_mtime < time.time() - 7 * 86400:
                    file.unlink()
        os.environ["SEMIRING_CACHE_DIR"] = str(folder)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """How many processes `-n auto` is: one a core, but not so many that they mostly compile the same kernels.

    Tests on a GPU fill its memory and look at what is left of it: where there is one, there is one process.
    """
    return 0 if gpus() else min(thread_count(), 8)


@pytest.hookimpl(tryfirst=True)  # before -m leaves out what is exhaustive
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `gpu` are for machines that have one, and some examples for those that have an MPI.

    Of tests marked `sampled` all but some cases are exhaustive.
    """
    cases = defaultdict[tuple[str, bool], list[pytest.Item]](list)
    for item in items:
        on_gpu = item.get_closest_marker("gpu") is not None
        if on_gpu and not gpus():
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU"))
        if item.nodeid.startswith("semiring/results/distributed.py") and not has_mpi():
            item.add_marker(pytest.mark.skip(reason="no MPI"))
        if item.get_closest_marker("sampled"):
            cases[item.nodeid.partition("[")[0], on_gpu].append(item)
    for same in cases.values():
        sampled = same[0].get_closest_marker("sampled")
        assert sampled is not None
        kept = {len(same) * i // sampled.args[0] for i in range(sampled.args[0])}
        for i, item in enumerate(same):
            if i not in kept:
                item.add_marker(pytest.mark.exhaustive)


@functools.cache
def has_mpi() -> bool:
    """Whether there are mpi4py and an MPI that it finds."""
    try:
        importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError):
        return False
    return True


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU with 4 GiB left, as far as choices are concerned."""
    monkeypatch.setattr(devices, "_found", lambda: (1, ""))
    monkeypatch.setattr(memory, "free_on_gpu", lambda number: 4 << 30)
    monkeypatch.setattr(machine, "_relative_size", lambda device: 1.0)
