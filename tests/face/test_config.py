"""`show_config`."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from semiring import config
from semiring.arrays import devices
from semiring.cli import main


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    config.show_config()
    lines = capsys.readouterr().out.splitlines()
    return {line[:11].strip() or line[11:].split(":")[0]: line[11:] for line in lines}


def test_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys)
    assert list(lines)[:10] == ["semiring", "Python", "processor", "vectors", "threads", "cache", "memory", "GPUs", "engines", "extras"]
    assert "NumPy 2" in lines["Python"]
    assert "llvmlite 0." in lines["Python"]
    assert "reference" in lines["engines"]
    assert int(lines["threads"]) >= 1


def test_why_there_is_no_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_found", lambda: (0, "the driver is too old"))
    lines = shown(capsys)
    assert lines["GPUs"] == "none that CuPy finds (the driver is too old)"
    assert "cuda" not in lines["engines"]


@pytest.mark.gpu
def test_gpus_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys)
    assert "NVIDIA" in lines["GPUs"]
    assert sum(int(some.split(" × ")[0]) for some in lines["GPUs"].split(", ")) == devices.gpus()
    assert lines["engines"].startswith("cuda (CUDA C++), cpu (LLVM)")


def test_the_environment_counts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEMIRING_NUM_THREADS", "7")
    monkeypatch.setenv("SEMIRING_CACHE_DIR", str(tmp_path))
    (tmp_path / "kernel.o").write_bytes(bytes(2**20))
    lines = shown(capsys)
    assert lines["threads"] == "7"
    assert lines["cache"] == f"{tmp_path}, 1 file, 1.0 MiB"
    monkeypatch.setenv("SEMIRING_CACHE_DIR", str(tmp_path / "none"))
    assert shown(capsys)["cache"].endswith("empty")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners and no modes here")
def test_a_cache_that_is_not_trusted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEMIRING_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o777)
    assert shown(capsys)["cache"] == f"{tmp_path}, not used: another user owns it or can write to it"


def test_a_wrong_setting_is_shown_not_raised(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMIRING_NUM_THREADS", "many")
    assert "SEMIRING_NUM_THREADS" in shown(capsys)["threads"]


def test_extras(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "installed", lambda name: "1.2" if name in ("scipy", "networkx") else None)
    lines = shown(capsys)
    assert lines["extras"] == "graphs: scipy 1.2, networkx 1.2"
    assert lines["symbolic"] == "symbolic: not installed"
    assert "source folder" in lines["semiring"]


def test_the_extras_are_those_of_pyproject() -> None:
    path = Path(__file__).parents[2] / "pyproject.toml"
    declared = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for extra, packages in config.EXTRAS.items():
        assert set(packages) <= {requirement.split(">")[0] for requirement in declared[extra]}


def test_nothing_heavy_is_imported_but_what_finds_gpus() -> None:
    program = (
        "import sys; from semiring.config import show_config; show_config();"
        "print(sorted({'scipy', 'networkx', 'pandas', 'sympy', 'bokeh_sampledata'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_info_is_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    config.show_config()
    expected = capsys.readouterr().out.splitlines()
    assert main(["info"]) == 0
    assert [line[:10] for line in capsys.readouterr().out.splitlines()] == [line[:10] for line in expected]
