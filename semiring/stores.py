"""Named matrices and a text in one file or folder: NumPy's .npz, Zarr's folders, and these zipped. Written by rows, whole or not at all."""

from __future__ import annotations

import contextlib
import importlib
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
from typing import Any, Protocol

import numpy as np

from semiring.algebra.errors import GraphError, SemiringError
from semiring.algebra.namespace import host, on_gpu

__all__ = ["Store", "blocks", "rows_on_host", "store_for"]

Array = np.ndarray[Any, Any]
Read = Callable[[str, tuple[int, ...], np.dtype[Any]], Array]
"""The array of a name, which has to have a shape and a dtype."""

_AT_ONCE = 1 << 24
"""Bytes that are read or written at once."""

_TEXT = "paths.json"


class Store(Protocol):
    """A file or folder of one format."""

    def write(self, text: str, arrays: dict[str, Any]) -> None:
        """Write all, in the place of what was there."""

    def reading(self, *, mmap: bool) -> contextlib.AbstractContextManager[tuple[str, Read]]:
        """The text, and what reads arrays. What goes wrong meanwhile is told as damage."""
        ...


def store_for(path: Path) -> Store:
    """The store that the name of a file tells.

    Raises
    ------
    GraphError
        For another ending.
    """
    name = path.name.lower()
    if name.endswith(".npz"):
        return _Npz(path)
    if name.endswith(".zarr"):
        return _Zarr(path)
    if name.endswith(".zarr.zip"):
        return _Zipped(path)
    raise GraphError(f"{path}: paths are kept in files that end in .npz, .zarr or .zarr.zip")


def blocks(shape: tuple[int, ...], itemsize: int) -> Iterator[tuple[Any, ...]]:
    """Indices of some rows of one matrix at a time, together all of (…, n, n) in the order of memory."""
    rows = _rows_at_once(shape, itemsize)
    for index in np.ndindex(shape[:-2]):
        for start in range(0, shape[-2], rows):
            yield (*index, slice(start, min(shape[-2], start + rows)))


def _rows_at_once(shape: tuple[int, ...], itemsize: int) -> int:
    return max(1, min(shape[-2], _AT_ONCE // max(1, shape[-1] * itemsize)))


def rows_on_host(array: Any, index: tuple[Any, ...]) -> Array:
    """Some rows of an array, wherever it lies, contiguous in the memory of the host."""
    with array.device if on_gpu(array) else contextlib.nullcontext():
        return np.ascontiguousarray(host(array[index]))


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A place for a new file or folder, which takes that of `path` once it is complete."""
    target = Path(os.path.realpath(path))
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as folder:
        new, old = Path(folder, "new"), Path(folder, "old")
        yield new
        if target.is_dir():
            target.rename(old)  # no system replaces a folder that has something in it
        try:
            new.replace(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise


@contextmanager
def _told_as_damage(path: Path) -> Iterator[None]:
    """What a file that nobody here has written, or that is damaged, makes other libraries raise."""
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}")
    try:
        yield
    except (SemiringError, MemoryError, PermissionError):
        raise
    except Exception as error:  # Zarr's own, its codecs', zipfile's, NumPy's and those of json share no class
        raise GraphError(f"{path} is damaged, or not what Paths.save writes: {type(error).__name__}: {error}") from error


def _as_expected(array: Array, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if tuple(array.shape) != shape or array.dtype != dtype:
        raise ValueError(f"{name} has shape {tuple(array.shape)} and dtype {array.dtype}, not {shape} and {dtype}")
    return array


class _Npz:
    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, text: str, arrays: dict[str, Any]) -> None:
        if self.path.is_dir():
            raise GraphError(f"{self.path} is a folder; name a file")
        with _replacing(self.path) as new, zipfile.ZipFile(new, "w") as archive:
            archive.writestr(_TEXT, text)
            for name, array in arrays.items():
                with archive.open(_aligned(archive, f"{name}.npy"), "w", force_zip64=True) as file:
                    dtype, shape = np.dtype(array.dtype), tuple(array.shape)
                    form = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(file, form)
                    for part in blocks(shape, dtype.itemsize):
                        file.write(rows_on_host(array, part).data)

    @contextmanager
    def reading(self, *, mmap: bool) -> Iterator[tuple[str, Read]]:
        with _told_as_damage(self.path), zipfile.ZipFile(self.path) as archive:

            def read(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
                if mmap and 0 not in shape:
                    return _as_expected(self._mapped(archive.getinfo(f"{name}.npy")), name, shape, dtype)
                with archive.open(f"{name}.npy") as file:
                    return _as_expected(np.lib.format.read_array(file, allow_pickle=False), name, shape, dtype)

            yield archive.read(_TEXT).decode(), read

    def _mapped(self, info: zipfile.ZipInfo) -> Array:
        """An array in the archive, where it lies."""
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{info.filename} is compressed")
        with self.path.open("rb") as file:
            file.seek(info.header_offset + 26)
            names, extra = struct.unpack("<HH", file.read(4))
            file.seek(names + extra, os.SEEK_CUR)
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            if file.tell() + math.prod(shape) * dtype.itemsize > info.header_offset + 30 + names + extra + info.file_size:
                raise ValueError(f"{info.filename} ends too early")
            return np.memmap(self.path, dtype, "r", file.tell(), shape)


def _aligned(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """A member whose array will begin at a multiple of 64 bytes, so that it can be used where it lies."""
    info = zipfile.ZipInfo(name)
    assert archive.fp is not None
    begin = archive.fp.tell() + 30 + len(name) + 20 + 4  # the header of the member, its sizes of 64 bits, and that of the padding
    info.extra = struct.pack("<HH", _PADDING, -begin % 64) + bytes(-begin % 64)
    return info


_PADDING = 0xD935
"""The kind of a field in the header of a member that is there for the alignment of what follows."""


class _Zarr:
    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, text: str, arrays: dict[str, Any]) -> None:
        if self.path.exists() and not self._may_be_replaced():
            raise GraphError(f"{self.path} exists and has no paths in it, so that it is not replaced; name another folder")
        with _replacing(self.path) as new:
            self._fill(new, text, arrays)

    def _may_be_replaced(self) -> bool:
        if not self.path.is_dir():
            return False
        try:
            return _TEXT in json.loads((self.path / "zarr.json").read_text())["attributes"]
        except (OSError, ValueError, KeyError, TypeError):
            return not any(self.path.iterdir())

    @staticmethod
    def _fill(folder: Path, text: str, arrays: dict[str, Any]) -> None:
        group = _zarr().open_group(str(folder), mode="w")
        sums = {}
        for name, array in arrays.items():
            dtype, shape = np.dtype(array.dtype), tuple(array.shape)
            chunks = (*(1 for _ in shape[:-2]), _rows_at_once(shape, dtype.itemsize), max(1, shape[-1]))
            there = group.create_array(name, shape=shape, dtype=dtype, chunks=chunks)
            sums[name] = 0
            for part in blocks(shape, dtype.itemsize):
                there[part] = some = rows_on_host(array, part)
                sums[name] = zlib.crc32(some.data, sums[name])
        group.attrs.update({_TEXT: text, "crc32": sums})

    @contextmanager
    def reading(self, *, mmap: bool) -> Iterator[tuple[str, Read]]:
        if mmap:
            raise GraphError(f"{self.path}: Zarr's arrays are compressed and cannot be mapped; use .npz, or load without mmap")
        with _told_as_damage(self.path), self._opened() as store:
            group = _zarr().open_group(store, mode="r")

            def read(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
                array, result = _as_expected(group[name], name, shape, dtype), np.empty(shape, dtype)
                crc = 0
                for part in blocks(shape, dtype.itemsize):
                    result[part] = array[part]
                    crc = zlib.crc32(result[part].data, crc)
                if crc != group.attrs["crc32"][name]:  # Zarr reads zeros where a file is missing
                    raise ValueError(f"the checksum of {name} is wrong")
                return result

            yield group.attrs[_TEXT], read

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        yield str(self.path)


class _Zipped(_Zarr):
    def write(self, text: str, arrays: dict[str, Any]) -> None:
        if self.path.is_dir():
            raise GraphError(f"{self.path} is a folder; name a file")
        with _replacing(self.path) as new:
            folder = new.with_name("folder")
            self._fill(folder, text, arrays)
            archive = shutil.make_archive(str(new), "zip", folder)
            Path(archive).rename(new)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        _zarr()
        storage = importlib.import_module("zarr.storage")
        store = storage.ZipStore(self.path, mode="r")
        try:
            yield store
        finally:
            store.close()


def _zarr() -> Any:
    try:
        return importlib.import_module("zarr")
    except ImportError:
        raise SemiringError("files that end in .zarr or .zarr.zip need Zarr, which is not installed: pip install zarr") from None
