"""Bytes out of archives and folders that need not be trusted: never more of them than belong there, whatever was compressed into a few."""

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
"""Bytes that a text may have however small its file is."""

_MOST_DEFLATED = 1032
"""How many bytes DEFLATE can make of one."""

_ZSTD = b"\x28\xb5\x2f\xfd"
"""What a frame of Zstandard begins with."""


class Damage(Exception):
    """What is wrong with a file, in words."""


@contextmanager
def naming(part: str) -> Iterator[None]:
    """Tells of which part of a file is what other libraries raise: Zarr, its codecs, zipfile, zlib and NumPy share no class of errors."""
    try:
        yield
    except (Damage, SemiringError, MemoryError, PermissionError):
        raise
    except Exception as error:
        raise Damage(f"{part}: {type(error).__name__}: {error}") from error


class Content(Protocol):
    """Gives all bytes of a name, of which there are at most so many; None where there is no such name."""

    def __call__(self, name: str, most: int | None = None) -> bytes | None:
        """By default there may be as many as the file has itself that the name is in, or a few."""
        ...


class Archive:
    """A ZIP file. A member is never unpacked beyond the size that it announces, and not at all if that cannot be true."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self.file = file

    def find(self, name: str) -> zipfile.ZipInfo | None:
        """A member that can be unpacked part by part, which zipfile only does with two of its methods."""
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
    """The files of a folder; each is its own measure."""

    def content(name: str, most: int | None = None) -> bytes | None:
        path = folder / name
        if not path.is_file():
            return None
        if most is not None:
            _require_few(name, path.stat().st_size, most)
        return path.read_bytes()

    return content


def _require_few(name: str, size: int, most: int) -> None:
    """Refuse more bytes than belong there."""
    if size > most:
        raise Damage(f"{name} has {counted(size, 'byte')}, and at most {most:,} belong there")


def parts(file: IO[bytes], size: int, name: str) -> Iterator[bytes]:
    """So many bytes of an open file, a part at a time; the last one makes zipfile compare its checksum."""
    while size:
        part = file.read(min(size, DISK))
        if not part:
            raise Damage(f"{name} ends {counted(size, 'byte')} too early")
        size -= len(part)
        yield part


def require_announced(frame: bytes, size: int, name: str) -> None:
    """Refuse a frame of Zstandard that does not say that it holds so many bytes (RFC 8878, 3.1.1.1): that is what is allocated for it."""
    announced = None
    if len(frame) > 5 and frame.startswith(_ZSTD):
        alone, width = bool(frame[4] & 0x20), (0, 2, 4, 8)[frame[4] >> 6]
        start = 5 + (not alone) + (0, 1, 2, 4)[frame[4] & 3]
        width = width or int(alone)
        announced = int.from_bytes(frame[start : start + width], "little") + 256 * (width == 2) if width else None
    if announced != size:
        raise Damage(f"{name} announces {'no size' if announced is None else counted(announced, 'byte')}, and {size:,} belong there")
