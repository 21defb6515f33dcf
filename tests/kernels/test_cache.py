"""The cache of object code: an optimisation only, whatever its folder is like."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import MAX_PLUS, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.common.errors import SemiringError
from semiring.kernels import cache
from semiring.kernels.cpu import compiler
from semiring.kernels.cpu.compiler import assembly
from semiring.kernels.cpu.kernels import Kernels, kernels_for
from semiring.kernels.hardware import ISAS, Target, host
from tests.kernels.samples import ISAS as USABLE

F4, F8 = np.dtype(np.float32), np.dtype(np.float64)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("SEMIRING_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def compute(semiring: Semiring = MIN_PLUS, dtype: np.dtype[Any] = F4, isa: str | None = None) -> None:
    """A product by kernels that this process has not loaded yet."""
    kernels = Kernels(semiring, (dtype,), host(isa))
    from semiring.kernels.cpu.engine import CpuEngine
    from semiring.kernels.engine import Block

    engine = CpuEngine(semiring, (dtype,), 1)
    engine._kernels = kernels
    C = Block((np.empty((1, 1), dtype),))
    engine.multiply(Block((np.full((1, 1), 3, dtype),)), Block((np.full((1, 1), 4, dtype),)), C)
    assert C.values[0].item() == semiring.mul(3, 4)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The IR of everything that is compiled."""
    seen: list[str] = []
    compile_ir = compiler._compile

    def spy(ir: str, target: Target) -> bytes:
        seen.append(ir)
        return compile_ir(ir, target)

    monkeypatch.setattr(compiler, "_compile", spy)
    return seen


def test_cold_then_warm(folder: Path, compilations: list[str]) -> None:
    compute()
    assert len(compilations) == 1
    (entry,) = folder.iterdir()
    assert entry.suffix == ".o"
    compute()
    assert len(compilations) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:40],
        lambda data: data[:-1],
        lambda data: data[:-9] + b"damaged!!",
        lambda data: b"x" * len(data),
    ],
)
def test_a_damaged_entry_is_compiled_again(folder: Path, compilations: list[str], damage: Any) -> None:
    compute()
    (entry,) = folder.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    compute()
    assert len(compilations) == 2
    compute()
    assert len(compilations) == 2
    assert len(entry.read_bytes()) == len(whole)


def test_an_entry_under_the_name_of_another_one_is_compiled_again(folder: Path, compilations: list[str]) -> None:
    """A file is not what its name says, but what its digest covers: min-plus and max-plus change places here."""
    compute(MIN_PLUS)
    (first,) = folder.iterdir()
    compute(MAX_PLUS)
    (second,) = set(folder.iterdir()) - {first}
    codes = first.read_bytes(), second.read_bytes()
    first.write_bytes(codes[1])
    second.write_bytes(codes[0])
    compute(MIN_PLUS)
    compute(MAX_PLUS)
    assert len(compilations) == 4
    assert (first.read_bytes(), second.read_bytes()) == codes


permissions = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners and no modes here")


@pytest.fixture
def umask() -> Iterator[None]:
    """New files and folders may be written to by everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


@permissions
def test_a_new_folder_is_private_whatever_the_umask(folder: Path, umask: None) -> None:
    compute()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(entry.stat().st_mode) for entry in folder.iterdir()] == [0o600]


@permissions
def test_the_own_folder_of_an_earlier_version_becomes_private(
    tmp_path: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch, umask: None
) -> None:
    monkeypatch.delenv("SEMIRING_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    own = tmp_path / "semiring"
    own.mkdir()
    compute()
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    compute()
    assert len(compilations) == 1


@permissions
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_chosen_folder_that_others_can_write_to_is_left_alone(folder: Path, compilations: list[str], mode: int) -> None:
    compute()
    (entry,) = folder.iterdir()
    folder.chmod(mode)
    compute()
    compute(MAX_PLUS)
    assert len(compilations) == 3
    assert list(folder.iterdir()) == [entry]
    assert stat.S_IMODE(folder.stat().st_mode) == mode
    folder.chmod(0o755)  # others may read it
    compute()
    assert len(compilations) == 3


@permissions
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_entry_that_others_can_write_to_is_compiled_again(folder: Path, compilations: list[str], mode: int) -> None:
    compute()
    (entry,) = folder.iterdir()
    entry.chmod(mode)
    compute()
    assert len(compilations) == 2
    compute()
    assert len(compilations) == 2
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


@permissions
@pytest.mark.parametrize("what", ["folder", "entry"])
def test_what_another_user_owns_is_not_loaded(folder: Path, compilations: list[str], what: str) -> None:
    compute()
    (entry,) = folder.iterdir()
    try:
        os.chown(folder if what == "folder" else entry, os.geteuid() + 1, -1)
    except PermissionError:
        pytest.skip("only the superuser gives files away")
    compute()
    compute()
    assert len(compilations) == (3 if what == "folder" else 2)  # what is in the own folder is replaced


@permissions
def test_a_user_who_is_another_one_now(folder: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    compute()
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    compute()
    assert len(compilations) == 2


@permissions
def test_links(folder: Path, tmp_path: Path, compilations: list[str]) -> None:
    """A folder may lie elsewhere, where it has the same rights; an entry is in it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)
    compute()
    compute()
    assert len(compilations) == 1
    (entry,) = elsewhere.iterdir()
    entry.rename(tmp_path / "moved")
    entry.symlink_to(tmp_path / "moved")
    compute()
    assert len(compilations) == 2
    assert not entry.is_symlink()
    assert (tmp_path / "moved").read_bytes() == entry.read_bytes()


@permissions
def test_a_pipe_nobody_writes_to(folder: Path, compilations: list[str]) -> None:
    compute()
    (entry,) = folder.iterdir()
    entry.unlink()
    os.mkfifo(entry, 0o600)
    compute()
    assert len(compilations) == 2
    compute()
    assert len(compilations) == 2


def test_an_entry_that_is_a_folder(folder: Path, compilations: list[str]) -> None:
    compute()
    (entry,) = folder.iterdir()
    entry.unlink()
    entry.mkdir()
    compute()
    assert len(compilations) == 2
    assert list(folder.iterdir()) == [entry]  # no temporary file stays behind


def test_a_folder_that_is_a_file(folder: Path, compilations: list[str]) -> None:
    folder.write_text("")
    compute()
    compute()
    assert len(compilations) == 2
    assert folder.read_text() == ""


def test_a_folder_that_cannot_be_written(folder: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError("read-only")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)  # the superuser may write anywhere
    compute()
    compute()
    assert len(compilations) == 2
    assert list(folder.iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(folder: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    compute()
    assert list(folder.iterdir()) == []


def test_what_tells_entries_apart(folder: Path, compilations: list[str]) -> None:
    """The operations, identities, dtype and instruction set do; the name does not."""
    variants: list[tuple[Semiring, Any, str | None]] = [
        (MIN_PLUS, F4, None),
        (MIN_PLUS, F8, None),
        (MAX_PLUS, F4, None),
        (PLUS_TIMES, F4, None),
        (Semiring("0.1", min, lambda a, b: a + b + 0.1 * 0, np.inf, 0), F4, None),
        (Semiring("0.5", min, lambda a, b: a + b + 0.0 * a, np.inf, 0), F4, None),
        *((MIN_PLUS, F4, isa) for isa in USABLE[1:]),
    ]
    for count, variant in enumerate(variants, start=1):
        compute(*variant)
        assert len(compilations) == count
    assert len(list(folder.iterdir())) == len(variants)
    compute(Semiring("renamed", min, lambda a, b: a + b, np.inf, 0))
    assert len(compilations) == len(variants)


def test_an_upgraded_generator_compiles_again(folder: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    compute()
    monkeypatch.setattr(compiler, "_generator_version", lambda: "another")
    compute()
    assert len(compilations) == 2


PROGRAM = """
import sys
import numpy as np
from semiring.algebra.catalogue import MIN_PLUS
from semiring.product import matmul
a = np.arange(90.0).reshape(9, 10) % 7
values, witness = matmul(a, a.T, MIN_PLUS, witness=True)
sums = a[:, :, None] + a.T[None]
assert (values == sums.min(axis=1)).all() and (witness == sums.argmin(axis=1)).all()
print("generated" if "semiring.kernels.cpu.micro" in sys.modules else "loaded")
"""


def processes(count: int, environment: dict[str, str]) -> list[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SEMIRING_", "XDG_"))} | environment | {"PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    outputs = [process.communicate(timeout=600) for process in started]
    for process, (_, errors) in zip(started, outputs, strict=True):
        assert process.returncode == 0, errors
    return [out.strip() for out, _ in outputs]


def test_processes_share_the_cache(tmp_path: Path) -> None:
    environment = {"SEMIRING_CACHE_DIR": str(tmp_path / "cache")}
    assert processes(2, environment)  # both begin with an empty cache
    entries = list((tmp_path / "cache").iterdir())
    assert {entry.suffix for entry in entries} == {".o"}
    assert processes(1, environment) == ["loaded"]
    assert list((tmp_path / "cache").iterdir()) == entries


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, compilations: list[str]) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("SEMIRING_CACHE_DIR", raising=False)
    for base in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(base, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    compute()
    assert len(compilations) == 1
    assert not cache.folder().exists()


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "home/.cache/semiring"),
        ("linux", {"XDG_CACHE_HOME": "xdg"}, "xdg/semiring"),
        ("darwin", {}, "home/Library/Caches/semiring"),
        ("win32", {}, "home/AppData/Local/semiring"),
        ("win32", {"LOCALAPPDATA": "local"}, "local/semiring"),
        ("linux", {"SEMIRING_CACHE_DIR": "own"}, "own"),
    ],
)
def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, platform: str, environment: dict[str, str], expected: str) -> None:
    for variable in ("SEMIRING_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    monkeypatch.setattr(sys, "platform", platform)
    assert cache.folder() == Path(expected)


# Processors.


def test_the_processor_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    assert host().isa == USABLE[0]
    for isa in USABLE:
        assert host(isa).vector_bytes == ISAS[isa].vector_bytes
    with pytest.raises(SemiringError, match=r"cannot run 'itanium'.*may be one of"):
        host("itanium")
    monkeypatch.setenv("SEMIRING_ISA", USABLE[-1])
    host.cache_clear()
    try:
        assert host().isa == USABLE[-1]
    finally:
        host.cache_clear()


def test_a_processor_without_kernels_is_told_about_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    from llvmlite import binding

    monkeypatch.setattr(binding, "get_process_triple", lambda: "riscv64-unknown-linux-gnu")
    host.cache_clear()
    try:
        with pytest.raises(SemiringError, match="device='reference'"):
            host()
    finally:
        host.cache_clear()


def test_every_arm_of_64_bits_has_neon(monkeypatch: pytest.MonkeyPatch) -> None:
    from llvmlite import binding

    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: binding.FeatureMap())  # as LLVM tells them on macOS
    monkeypatch.setattr(binding, "get_host_cpu_name", lambda: "apple-m1")
    monkeypatch.setattr(binding, "get_process_triple", lambda: "arm64-apple-darwin25.0.0")
    monkeypatch.delenv("SEMIRING_ISA", raising=False)
    host.cache_clear()
    try:
        assert host() == replace(ISAS["neon"], cpu="apple-m1", features="", tune="")
    finally:
        host.cache_clear()


@pytest.mark.skipif("avx512" not in USABLE, reason="the names of AVX-512's instructions")
def test_a_minimum_is_one_instruction() -> None:
    target = host("avx512")
    for semiring, dtype, minimum, sums in (
        (MIN_PLUS, F4, "vminps", ("vfmadd", "vaddps")),
        (MIN_PLUS, np.dtype(np.int32), "vpminsd", ("vpaddd",)),
    ):
        text = assembly(kernels_for(semiring, (dtype,), "avx512").ir("product"), target)
        assert minimum in text
        assert any(s in text for s in sums)
        assert "{1to16}" in text or not target.embedded_broadcast


def test_threads_that_need_the_same_code_compile_it_once(folder: Path) -> None:
    compiled: list[int] = []

    def compile_slowly() -> bytes:
        time.sleep(0.05)
        compiled.append(1)
        return b"code"

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: cache.compiled("what it depends on", ".o", compile_slowly), range(4)))
    assert found == [b"code"] * 4
    assert len(compiled) == 1
