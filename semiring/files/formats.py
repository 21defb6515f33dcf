"""Named matrices and a text in one file or folder: NumPy's .npz, a Zarr folder, or a zipped one; written by rows, whole or not at all.

`numpy.savez` would copy a whole matrix from a GPU, and aligns no array for `numpy.memmap`; the headers are NumPy's and zipfile's.

No file is trusted. Before any allocation, announced sizes are compared with the expected ones, and array headers with the headers that
this module writes.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.devices import host, on_gpu
from semiring.arrays.pieces import DISK, slices
from semiring.common.errors import GraphError, SemiringError, library
from semiring.common.units import counted

__all__ = ["Damage", "Read", "blocks", "format_for", "replacing", "rows_on_host"]

Read = Callable[[str, tuple[int, ...], np.dtype[Any]], Array]
"""A function that returns the array of a name, of an expected shape and dtype."""

Content = Callable[[str, int | None], bytes | None]
"""A function that returns all bytes of a member, at most so many, or None for a missing one."""

_FEW = 1 << 20  # bytes that a text may have in any file, however small
_MOST_DEFLATED = 1032  # the largest expansion by DEFLATE
_ZSTD = b"\x28\xb5\x2f\xfd"  # the first bytes of a Zstandard frame


class Damage(Exception):
    """A fault of a file, in words."""


@contextmanager
def _naming(part: str) -> Iterator[None]:
    """Name the part of a file in errors of other libraries: Zarr, its codecs, zipfile, zlib and NumPy share no class of errors."""
    try:
        yield
    except (Damage, SemiringError, MemoryError, PermissionError):
        raise
    except Exception as error:
        raise Damage(f"{part}: {type(error).__name__}: {error}") from error


def format_for(path: Path, kind: str) -> _Npz | _Zarr:
    """Return the format for the suffix of a path; `kind` is "paths" or "factor".

    Its `write` replaces an older file; its `reading` gives the text and a reader of arrays, and reports faults as damage.
    """
    formats: dict[str, type[_Npz | _Zarr]] = {".npz": _Npz, ".zarr": _Zarr, ".zarr.zip": _Zipped}
    for suffix, form in formats.items():
        if path.name.lower().endswith(suffix):
            return form(path, kind)
    raise GraphError(f"{path}: the name must end in .npz, .zarr or .zarr.zip")


def blocks(shape: tuple[int, ...], itemsize: int, rows: int | None = None) -> Iterator[tuple[Any, ...]]:
    """Yield indices of some `rows` of one matrix at a time (by default a buffer of the disk), together all of (…, n, n) in order."""
    if 0 in shape:
        return
    rows = _rows_at_once(shape, itemsize) if rows is None else rows
    for index in np.ndindex(shape[:-2]):
        for some in slices(shape[-2], 1, rows):
            yield (*index, some)


def _rows_at_once(shape: tuple[int, ...], itemsize: int) -> int:
    return max(1, min(shape[-2], DISK // max(1, shape[-1] * itemsize)))


def rows_on_host(array: Any, index: tuple[Any, ...]) -> Array:
    """Return some rows of an array on any device, contiguous in host memory."""
    with array.device if on_gpu(array) else contextlib.nullcontext():
        return np.ascontiguousarray(host(array[index]))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path for a new file or folder that replaces `path` when complete."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():  # otherwise the message would name the temporary folder
        raise FileNotFoundError(f"there is no folder {target.parent}")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as folder:
        new, old = Path(folder, "new"), Path(folder, "old")
        yield new
        if target.is_dir():
            target.rename(old)  # no system replaces a folder with content
        try:
            new.replace(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise


@contextmanager
def _told_as_damage(path: Path, kind: str) -> Iterator[None]:
    """Turn errors of other libraries about the content of a file into `GraphError`."""
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}")
    try:
        with _naming("it cannot be read"):
            yield
    except Damage as error:
        raise GraphError(f"{path} is damaged, or was not written by {kind.capitalize()}.save: {error}") from error.__cause__


class _Npz:
    """NumPy's archive of arrays, uncompressed so that arrays can be mapped."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind, self.text = path, kind, f"{kind}.json"

    def write(self, text: str, arrays: dict[str, Any]) -> None:
        if self.path.is_dir():
            raise GraphError(f"{self.path} is a folder; name a file")
        with replacing(self.path) as new, zipfile.ZipFile(new, "w") as archive:
            archive.writestr(self.text, text)
            for name, array in arrays.items():
                with archive.open(_aligned(archive, f"{name}.npy"), "w", force_zip64=True) as file:
                    dtype, shape = np.dtype(array.dtype), tuple(array.shape)
                    _write_header(file, shape, dtype)
                    for part in blocks(shape, dtype.itemsize):
                        file.write(rows_on_host(array, part).data)

    @contextmanager
    def reading(self, *, mmap: bool) -> Iterator[tuple[str, Read]]:
        with _told_as_damage(self.path, self.kind), zipfile.ZipFile(self.path) as file:
            archive = _Archive(file)

            def read(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
                with _naming(f"{name}.npy"):
                    return self._read(archive, f"{name}.npy", shape, dtype, mmap=mmap and 0 not in shape)

            content = archive.content(self.text)
            if content is None:
                raise Damage(f"{self.text} is missing")
            yield content.decode(), read

    def _read(self, archive: _Archive, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], *, mmap: bool) -> Array:
        """Read or map the array of a member, in either case to the end, where the checksum is compared."""
        info = archive.find(name)
        if info is None:
            raise Damage(f"{name} is missing")
        if mmap and info.compress_type != zipfile.ZIP_STORED:
            raise Damage(f"{name} is compressed and cannot be mapped; load without mmap")
        size = math.prod(shape) * dtype.itemsize
        with archive.file.open(info) as file:
            header = _header_bytes(file, name, shape, dtype)
            if info.file_size != header + size:
                raise Damage(
                    f"{name} has {counted(info.file_size - header, 'byte')} after its header, not {size:,} for {shape} entries of {dtype}"
                )
            if mmap:
                for _ in _parts(file, size, name):
                    pass
                return np.memmap(self.path, dtype, "r", self._start(info) + header, shape)
            result = np.empty(shape, dtype)
            flat, at = result.reshape(-1).view(np.uint8), 0
            for part in _parts(file, size, name):
                flat[at : at + len(part)] = np.frombuffer(part, np.uint8)
                at += len(part)
            return result

    def _start(self, info: zipfile.ZipInfo) -> int:
        """Return the offset of the bytes of a member, which zipfile does not expose."""
        with self.path.open("rb") as file:
            file.seek(info.header_offset + 26)
            names, extra = struct.unpack("<HH", file.read(4))
        return info.header_offset + 30 + int(names) + int(extra)


def _header_bytes(file: IO[bytes], name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the length of the header of a .npy file, which must equal the output of `_write_header` up to blanks.

    The header is compared, not parsed as by NumPy: an untrusted text may nest brackets without end.
    """
    begin = file.read(10)
    text = file.read(int.from_bytes(begin[8:], "little"))
    _write_header(expected := io.BytesIO(), shape, dtype)
    if begin[:8] != expected.getvalue()[:8] or text.strip() != expected.getvalue()[10:].strip():
        said = text.strip()[:200].decode("latin-1")
        raise Damage(f"{name} begins with the header {said!r}, not with {expected.getvalue()[10:].strip().decode('latin-1')!r}")
    return len(begin) + len(text)


def _write_header(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    form = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, form)


def _aligned(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Make a member whose array will begin at a multiple of 64 bytes, for use in place."""
    info = zipfile.ZipInfo(name)
    assert archive.fp is not None
    begin = archive.fp.tell() + 30 + len(name) + 20 + 4  # the header of the member, its sizes of 64 bits, and that of the padding
    info.extra = struct.pack("<HH", _PADDING, -begin % 64) + bytes(-begin % 64)
    return info


_PADDING = 0xD935  # the kind of the header field of a member that pads for alignment


class _Zarr:
    """A folder of Zarr arrays, compressed by Zstandard in chunks of whole rows."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind, self.text = path, kind, f"{kind}.json"

    def write(self, text: str, arrays: dict[str, Any]) -> None:
        if self.path.exists() and not self._may_be_replaced():
            raise GraphError(f"{self.path} exists and holds no saved {self.kind}; name another folder")
        with replacing(self.path) as new:
            self._fill(new, text, arrays)

    def _may_be_replaced(self) -> bool:
        """Return True for an empty folder, and for one that this class has written."""
        if not self.path.is_dir():
            return False
        try:
            return self.text in json.loads((self.path / "zarr.json").read_text())["attributes"]
        except (OSError, ValueError, KeyError, TypeError):
            return not any(self.path.iterdir())

    def _fill(self, folder: Path, text: str, arrays: dict[str, Any]) -> None:
        group = _zarr("zarr").open_group(str(folder), mode="w")
        sums = {self.text: zlib.crc32(text.encode())}
        for name, array in arrays.items():
            dtype, shape = np.dtype(array.dtype), tuple(array.shape)
            chunks = (*(1 for _ in shape[:-2]), _rows_at_once(shape, dtype.itemsize), max(1, shape[-1]))
            there = group.create_array(name, shape=shape, dtype=dtype, chunks=chunks, compressors=_zarr("zarr.codecs").ZstdCodec())
            sums[name] = 0
            for part in blocks(shape, dtype.itemsize):
                there[part] = some = rows_on_host(array, part)
                sums[name] = zlib.crc32(some.data, sums[name])
        group.attrs.update({self.text: text, "crc32": sums})

    @contextmanager
    def reading(self, *, mmap: bool) -> Iterator[tuple[str, Read]]:
        if mmap:
            raise GraphError(f"{self.path}: Zarr's arrays are compressed and cannot be mapped; use .npz, or load without mmap")
        with _told_as_damage(self.path, self.kind), self._contents() as content:
            checked = _CheckedFolder(content)
            checked.take("zarr.json")
            group = _zarr("zarr").open_group(checked.store, mode="r")

            def read(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
                with _naming(name):
                    return self._read(checked, group, name, shape, dtype)

            try:
                text, sums = str(group.attrs[self.text]), group.attrs["crc32"]
            except KeyError as error:
                raise Damage(f"zarr.json has no {error}") from None
            crc = zlib.crc32(text.encode())
            if sums.get(self.text, crc) != crc:  # the first folders had no checksum of the text
                raise Damage(f"the checksum of {self.text} is wrong")
            yield text, read

    @staticmethod
    def _read(checked: _CheckedFolder, group: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        checked.take(f"{name}/zarr.json", _FEW)
        rows = _rows_of_chunks(array := group[name], name, shape, dtype)
        result, crc = np.empty(shape, dtype), 0
        for part in blocks(shape, dtype.itemsize, rows):
            place = (*part[:-1], part[-1].start // rows, 0)
            with checked.chunk(f"{name}/c/{'/'.join(map(str, place))}", rows * shape[-1] * dtype.itemsize):
                result[part] = array[part]
            crc = zlib.crc32(result[part].data, crc)
        if crc != group.attrs["crc32"][name]:  # Zarr reads zeros for a missing file
            raise Damage(f"the checksum of {name} is wrong")
        return result

    @contextmanager
    def _contents(self) -> Iterator[Content]:
        yield self._content

    def _content(self, name: str, most: int | None) -> bytes | None:
        file = self.path / name
        if not file.is_file():
            return None
        if most is not None:
            _require_few(name, file.stat().st_size, most)
        return file.read_bytes()


class _Zipped(_Zarr):
    """A zipped Zarr folder."""

    def write(self, text: str, arrays: dict[str, Any]) -> None:
        if self.path.is_dir():
            raise GraphError(f"{self.path} is a folder; name a file")
        with replacing(self.path) as new:
            folder = new.with_name("folder")
            self._fill(folder, text, arrays)
            archive = shutil.make_archive(str(new), "zip", folder)
            Path(archive).rename(new)

    @contextmanager
    def _contents(self) -> Iterator[Content]:
        with zipfile.ZipFile(self.path) as file:
            yield _Archive(file).content


class _CheckedFolder:
    """The checked files of a Zarr folder in memory; Zarr sees no others."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._files: dict[str, Any] = {}
        self._buffer = _zarr("zarr.core.buffer").default_buffer_prototype().buffer
        self.store = _zarr("zarr.storage").MemoryStore(self._files, read_only=True)

    def take(self, name: str, most: int | None = None) -> None:
        """Add a file of metadata."""
        content = self._content(name, most)
        if content is None:
            raise Damage(f"{name} is missing")
        self._files[name] = self._buffer.from_bytes(content)

    @contextmanager
    def chunk(self, name: str, size: int) -> Iterator[None]:
        """Provide a chunk that unpacks to `size` bytes, or none if Zarr has left out a chunk of zeros."""
        content = self._content(name, size + size // 128 + 1024)  # the most that Zstandard needs for incompressible bytes
        if content is not None:
            _require_announced(content, size, name)
            self._files[name] = self._buffer.from_bytes(content)
        yield
        self._files.pop(name, None)


def _rows_of_chunks(array: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the number of rows of a chunk of an array in the layout of `_Zarr`."""
    if not isinstance(array, _zarr("zarr").Array):
        raise Damage(f"{name} is not an array")
    if tuple(array.shape) != shape or array.dtype != dtype:
        raise Damage(f"{name} has shape {tuple(array.shape)} and dtype {array.dtype}, not {shape} and {dtype}")
    if [codec["name"] for codec in array.metadata.to_dict()["codecs"]] != ["bytes", "zstd"]:
        raise Damage(f"{name} is not compressed by Zstandard alone")
    *single, rows, columns = array.chunks
    if any(length != 1 for length in single) or not 1 <= rows <= max(1, shape[-2]) or columns != max(1, shape[-1]):
        raise Damage(f"{name} has chunks of {tuple(array.chunks)} entries, which are not rows of {shape}")
    return int(rows)


def _zarr(module: str) -> Any:
    return library(module, "a name that ends in .zarr or .zarr.zip")


class _Archive:
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
        """Return all bytes of a member, by default at most a few more than the archive has itself; None for a missing one."""
        info = self.find(name)
        if info is None:
            return None
        if most is None:
            most = _FEW + os.path.getsize(str(self.file.filename))
        _require_few(name, info.file_size, most)
        with self.file.open(info) as file:
            return b"".join(_parts(file, info.file_size, name))


def _require_few(name: str, size: int, most: int) -> None:
    if size > most:
        raise Damage(f"{name} has {counted(size, 'byte')}, and at most {most:,} belong there")


def _parts(file: IO[bytes], size: int, name: str) -> Iterator[bytes]:
    """Yield the bytes of an open file in parts; after the last, zipfile compares the checksum."""
    while size:
        part = file.read(min(size, DISK))
        if not part:
            raise Damage(f"{name} ends {counted(size, 'byte')} too early")
        size -= len(part)
        yield part


def _require_announced(frame: bytes, size: int, name: str) -> None:
    """Refuse a Zstandard frame that announces another size (RFC 8878, 3.1.1.1), because the decoder allocates the announced size."""
    announced = None
    if len(frame) > 5 and frame.startswith(_ZSTD):
        alone, width = bool(frame[4] & 0x20), (0, 2, 4, 8)[frame[4] >> 6]
        start = 5 + (not alone) + (0, 1, 2, 4)[frame[4] & 3]
        width = width or int(alone)
        announced = int.from_bytes(frame[start : start + width], "little") + 256 * (width == 2) if width else None
    if announced != size:
        raise Damage(f"{name} announces {'no size' if announced is None else counted(announced, 'byte')}, and {size:,} belong there")
