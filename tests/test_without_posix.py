"""The library without the names that Python has on POSIX alone: Windows stays possible where no test runs on it."""

import os
import subprocess
import sys
from pathlib import Path

MODULES = "fcntl grp pty pwd resource syslog termios tty"
OF_OS = """
    O_ACCMODE O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_LARGEFILE O_NDELAY O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH
    O_RSYNC O_SYNC chown chroot confstr ctermid eventfd fchdir fchmod fchown fdatasync fork forkpty fpathconf fstatvfs getegid geteuid
    getgid getgrouplist getgroups getloadavg getpgid getpgrp getpriority getresgid getresuid getsid getuid initgroups killpg lchown
    lockf major makedev memfd_create minor mkfifo mknod nice openpty pathconf pipe2 posix_fadvise posix_fallocate posix_spawn
    posix_spawnp pread preadv pwrite pwritev readv register_at_fork sched_getaffinity sched_getparam sched_getscheduler
    sched_setaffinity sched_yield sendfile setegid seteuid setgid setpgid setpriority setregid setreuid setsid setuid splice statvfs
    sync sysconf sysconf_names tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 waitid writev
"""
PROGRAM = """
import ctypes, os, subprocess, sys  # Python's own modules take the form of the system at their import
from pathlib import Path

import llvmlite.binding
import numpy as np

modules, names, folder = sys.argv[1].split(), sys.argv[2].split(), Path(sys.argv[3])
sys.modules.update(dict.fromkeys([*modules, "psutil"]))
for name in names:
    if hasattr(os, name):
        delattr(os, name)
sys.platform = "win32"
os.environ["LOCALAPPDATA"] = str(folder)

import semiring as sr
from semiring.arrays import memory
from semiring.streaming.folder import State

memory._MEMORY_INFO = folder / "none"
weights = np.array([[0, 3, 8], [np.inf, 0, 2], [1, np.inf, 0]])
expected = [[0, 3, 5], [3, 0, 2], [1, 4, 0]]
assert sr.apsp(weights).tolist() == expected
assert list((folder / "semiring").iterdir())  # compiled kernels

np.save(folder / "given.npy", weights)
given = np.load(folder / "given.npy", mmap_mode="r+")
for _ in range(2):
    kept = sr.apsp(given, checkpoint=folder / "checkpoint", paths=True)
    assert kept.distances.tolist() == expected
    assert kept.path(0, 2) == [0, 1, 2]
kept.save(folder / "paths.npz")
assert sr.Paths.load(folder / "paths.npz", mmap=True).distances.tolist() == expected
assert sr.apsp(given, checkpoint=folder / "other", overwrite=True).tolist() == expected
State(folder, {}).write(durable=True)

large = np.random.default_rng(0).random((300, 300))
assert sr.matmul(large, large, sr.MIN_PLUS, threads=2)[7, 5] == (large[7] + large[:, 5]).min()
sr.show_config()
"""


def test_apsp_files_and_threads(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SEMIRING_CACHE_DIR"}
    arguments = [sys.executable, "-c", PROGRAM, MODULES, OF_OS, str(tmp_path)]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
