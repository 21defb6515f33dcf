"""Python for 64-bit ARM, with this tree, on a Debian machine of another kind: slow, but what runs is ARM's machine code.

python3 -m tests.on_arm -m pytest -n auto tests/kernels

It is the distribution's own arm64 Python with the packages' own aarch64 wheels, in QEMU's emulation of a process. All of that is downloaded
once, by apt-get and pip, into build/arm, or the folder that ON_ARM names; nothing is installed, so it needs no root. Whatever calls
``sys.executable`` there, as tests and pytest-xdist do, gets this Python again. The program ends with 69 where something cannot be had.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.lowest_versions import PYPROJECT, requirements

TREE = PYPROJECT.parent
FOLDER = Path(os.environ.get("ON_ARM") or TREE / "build/arm").absolute()
ROOT = FOLDER / "root"
PYTHON = ROOT / "usr/bin/python-on-arm"

UNAVAILABLE = 69
"""What sysexits.h calls EX_UNAVAILABLE."""

WANTED = re.compile(r"(array-api-strict|hypothesis|llvmlite|networkx|numpy|pytest|pytest-xdist|scipy|sympy)\b")
"""What kernels and algorithms need, and what tests them."""


def run(*command: str | Path) -> str:
    """What a command prints; if it fails, the program ends."""
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        print(f"{problem}\nThere is no Python for 64-bit ARM: it needs Debian's apt-get, its packages, pip, and PyPI.", file=sys.stderr)
        sys.exit(UNAVAILABLE)


def get_python() -> None:
    """Debian's packages, with all that they depend on, as if there were none on this machine."""
    here, apt, extracted = run("dpkg", "--print-architecture").strip(), FOLDER / "apt", FOLDER / "extracted"
    for part in ("lists", "archives"):
        (apt / part / "partial").mkdir(parents=True)
    (apt / "status").touch()
    settings = {
        "Dir::State": apt,
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt,
        "APT::Architectures": f"{here},arm64",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
    }
    apt_get = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    packages = ["python3:arm64", "libstdc++6:arm64", f"qemu-user-static:{here}"]
    run(*apt_get, "update")
    run(*apt_get, "install", "--yes", "--no-install-recommends", "--download-only", *packages)
    for pattern, folder in (("*_arm64.deb", ROOT), ("qemu-user*.deb", extracted)):
        for package in (apt / "archives").glob(pattern):
            run("dpkg-deb", "--extract", package, folder)
    emulator = min((extracted / "usr/bin").glob("qemu-aarch64*")).resolve().rename(FOLDER / "qemu")
    shutil.rmtree(extracted)
    shutil.rmtree(apt)
    # Files are looked for below the root first. Of a processor with SVE the emulated floating-point flags make NumPy's own products warn
    # of divisions by 0. Python takes the name that it was called by for its executable's.
    command = shlex.join([str(emulator), "-cpu", "neoverse-n1", "-L", str(ROOT), "-0"])
    PYTHON.write_text(f'#!/bin/sh\nexec {command} "$0" {shlex.quote(str((ROOT / "usr/bin/python3").resolve()))} "$@"\n')
    PYTHON.chmod(0o755)


def get_packages(packages: list[str]) -> None:
    """The newest wheels that fit that Python and its C library, beside its own packages."""
    program = "import os, sys; print(os.confstr('CS_GNU_LIBC_VERSION'), '%d.%d' % sys.version_info[:2])"
    _, libc, python = run(PYTHON, "-c", program).split()
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in range(17, int(libc.partition(".")[2]) + 1)]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--only-binary=:all:",
        f"--python-version={python}",
        *platforms,
    ]
    run(*pip, "--platform=manylinux2014_aarch64", "--target", ROOT / "usr/lib/python3/dist-packages", *packages)


if __name__ == "__main__":
    packages, ready = sorted(set(filter(WANTED.match, requirements()))), FOLDER / "ready"
    if not ready.exists() or ready.read_text().splitlines() != packages:
        shutil.rmtree(FOLDER, ignore_errors=True)
        get_python()
        get_packages(packages)
        ready.write_text("\n".join(packages))
    os.environ["PYTHONPATH"] = str(TREE)
    os.execv(PYTHON, [str(PYTHON), *sys.argv[1:]])
