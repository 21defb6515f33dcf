"""Docstrings that describe a parameter once for several functions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["described_by"]

F = TypeVar("F", bound=Callable[..., Any])

Entry = tuple[str, list[str], str, list[str]]
"""The margin that Python before 3.13 leaves of the source's own, the names of parameters, " : type", and the lines of the description."""


def described_by(*others: Callable[..., Any]) -> Callable[[F], F]:
    """Replace "As for `other`." in a description of parameters by the description in the docstring of `other`.

    So the source has one description, and `help` of each function is complete. Text after the reference stays. References under ``Other
    Parameters``, for few readers, stay references. A docstring without parameters takes all sections between examples and notes from the
    first of the others, with the parameters of the function.
    """

    def complete(function: F) -> F:
        if function.__doc__ is None:  # python -OO
            return function
        if "Parameters\n" not in function.__doc__ and others[0].__doc__:
            function.__doc__ = _with_sections(function.__doc__, others[0].__doc__, set(inspect.signature(function).parameters))
        described = {f"As for `{other.__name__}`.": _all_entries(other.__doc__ or "") for other in others}
        before, entries, after = _section(function.__doc__, "Parameters")
        lines = list[str]()
        for margin, names, kind, said in entries:
            first = said[0].strip() if said else ""
            reference = first[: first.find("`.") + 2]
            if reference not in described:
                lines += [f"{margin}{', '.join(names)}{kind}", *said]
                continue
            more = [f"{margin}    {rest}"] if (rest := first.removeprefix(reference).strip()) else []
            for _, theirs, kind, text in described[reference]:
                if own := [name for name in names if name in theirs]:
                    lines += [f"{margin}{', '.join(own)}{kind}", *text, *more, *said[1:]]
        function.__doc__ = before + "\n".join(lines) + after
        return function

    return complete


def _with_sections(text: str, other: str, wanted: set[str]) -> str:
    """Insert the sections of another docstring between the examples and the notes, with the parameters that are wanted."""
    for name in ("Parameters", "Other Parameters"):
        before, entries, after = _section(other, name)
        lines = [
            line
            for margin, names, kind, said in entries
            if (some := [name for name in names if name in wanted])
            for line in (f"{margin}{', '.join(some)}{kind}", *said)
        ]
        other = before + "\n".join(lines) + after
    start, end = (other.rfind("\n", 0, other.index(f"{name}\n")) + 1 for name in ("Parameters", "Notes"))
    notes = text.rfind("\n", 0, text.index("Notes\n")) + 1 if "Notes\n" in text else len(text.rstrip()) + 1
    return f"{text[:notes].rstrip()}\n\n{other[start:end]}{text[notes:]}"


@functools.cache
def _all_entries(text: str) -> list[Entry]:
    return _section(text, "Parameters")[1] + _section(text, "Other Parameters")[1]


def _section(text: str, name: str) -> tuple[str, list[Entry], str]:
    """Split a docstring into the text before the entries of a section, the entries (up to the first blank line), and the rest."""
    at = text.find(f"{name}\n")
    if at < 0:
        return text, [], ""
    margin = text[text.rfind("\n", 0, at) + 1 : at]
    start = text.index("\n", at + len(name) + 1) + 1
    end = found if (found := text.find("\n\n", start)) >= 0 else len(text.rstrip())
    entries = list[Entry]()
    for line in text[start:end].splitlines():
        if line.startswith(f"{margin} "):
            entries[-1][3].append(line)
        else:
            names, colon, kind = line.partition(" : ")
            entries.append((margin, names.strip().split(", "), colon + kind, []))
    return text[:start], entries, text[end:]
