"""Members of untrusted archives and folders, with a bound on the unpacked bytes."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from semiring.arrays.pieces import DISK
from semiring.common.errors import SemiringError
from semiring.common.units import counted

__all__ = ["FEW", "Archive", "Content", "Damage", "content_of_folder", "naming", "parts", "require_announced"]

FEW = 1 << 20
"""The bytes that a text may have in any file, however small."""

_MOST_DEFLATED = 1032  # the largest expansion by DEFLATE
_ZSTD = b"\x28\xb5\x2f\xfd"  # the first bytes of a Zstandard frame


class Damage(Exception):
    """A fault of a file, in words."""


@contextmanager
def naming(part: str) -> Iterator[None]:
    """Name the part of a file in errors of other libraries: Zarr, its codecs, zipfile, zlib and NumPy share no class of errors."""
    try:
        yield
    except (Damage, SemiringError, MemoryError, PermissionError):
        raise
    except Exception as error:
        raise Damage(f"{part}: {type(error).__name__}: {error}") from error


class Content(Protocol):
    """Returns all bytes of a member, or None for a missing one."""

    def __call__(self, name: str, most: int | None = None) -> bytes | None:
        """Refuse more than `most` bytes, by default a few more than the archive has itself."""
        ...


class Archive:
    """A ZIP file. No member is unpacked beyond its announced size, or at all if the compressed size rules the announced one out."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self.file = file

    def find(self, name: str) -> zipfile.ZipInfo | None:
        """Return a member that zipfile can unpack part by part: stored, or compressed by DEFLATE."""
        info = self.file.NameToInfo.get(name)
        if info is None:
            return None
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Damage(f"{name} is compressed by another method than DEFLATE")
        packed, size = info.compress_size, info.file_size
        if size > packed * _MOST_DEFLATED or (size != packed and info.compress_type == zipfile.ZIP_STORED):
            raise Damage(f"{name} announces {counted(size, 'byte')}, which its {packed:,} cannot hold")
        return info

    def content(self, name: str, most: int | None = None) -> bytes | None:
        """See `Content`."""
        info = self.find(name)
        if info is None:
            return None
        if most is None:
            most = FEW + os.path.getsize(str(self.file.filename))
        _require_few(name, info.file_size, most)
        with self.file.open(info) as file:
            return b"".join(parts(file, info.file_size, name))


def content_of_folder(folder: Path) -> Content:
    """Return a reader of the files of a folder; by default any size is accepted."""

    def content(name: str, most: int | None = None) -> bytes | None:
        path = folder / name
        if not path.is_file():
            return None
        if most is not None:
            _require_few(name, path.stat().st_size, most)
        return path.read_bytes()

    return content


def _require_few(name: str, size: int, most: int) -> None:
    if size > most:
        raise Damage(f"{name} has {counted(size, 'byte')}, and at most {most:,} belong there")


def parts(file: IO[bytes], size: int, name: str) -> Iterator[bytes]:
    """Yield the bytes of an open file in parts; after the last, zipfile compares the checksum."""
    while size:
        part = file.read(min(size, DISK))
        if not part:
            raise Damage(f"{name} ends {counted(size, 'byte')} too early")
        size -= len(part)
        yield part


def require_announced(frame: bytes, size: int, name: str) -> None:
    """Refuse a Zstandard frame that announces another size (RFC 8878, 3.1.1.1), because the decoder allocates the announced size."""
    announced = None
    if len(frame) > 5 and frame.startswith(_ZSTD):
        alone, width = bool(frame[4] & 0x20), (0, 2, 4, 8)[frame[4] >> 6]
        start = 5 + (not alone) + (0, 1, 2, 4)[frame[4] & 3]
        width = width or int(alone)
        announced = int.from_bytes(frame[start : start + width], "little") + 256 * (width == 2) if width else None
    if announced != size:
        raise Damage(f"{name} announces {'no size' if announced is None else counted(announced, 'byte')}, and {size:,} belong there")
