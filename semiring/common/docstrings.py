"""Docstrings that describe a parameter once for several functions."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["described_by"]

F = TypeVar("F", bound=Callable[..., Any])

Entry = tuple[str, list[str], str, list[str]]
"""The margin that Python before 3.13 leaves of the source's own, the names of parameters, " : type", and the lines of the description."""

_SECTIONS = ("Parameters", "Returns", "Other Parameters", "Raises", "Notes")
_HEADING = re.compile(rf"^(?= *(?:{'|'.join(_SECTIONS)})\n *-)", re.MULTILINE)


def described_by(*others: Callable[..., Any]) -> Callable[[F], F]:
    """Replace "As for `other`." in a description of parameters by the description in the docstring of `other`.

    So the source has one description, and `help` of each function is complete. Text after the reference stays. References under ``Other
    Parameters``, for few readers, stay references. Sections of parameters, results and errors that a docstring leaves out are taken from
    the first of the others.
    """

    def complete(function: F) -> F:
        if function.__doc__ is None:  # python -OO
            return function
        function.__doc__ = _with_sections(function.__doc__, others[0].__doc__ or "", set(inspect.signature(function).parameters))
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


def _with_sections(text: str, other: str, parameters: set[str]) -> str:
    """Add the sections of another docstring that a docstring leaves out, with the parameters of the function that are described nowhere.

    A section that the docstring has is kept as it is.
    """
    own, theirs = _sections(text), _sections(other)
    missing = parameters - {name for _, names, _, _ in _all_entries(text) for name in names}
    for section in ("Parameters", "Other Parameters"):
        before, entries, _ = _section(theirs.pop(section, ""), section)
        for margin, names, kind, said in entries:
            if some := [name for name in names if name in missing]:
                theirs[section] = "\n".join([theirs.get(section, before).rstrip(), f"{margin}{', '.join(some)}{kind}", *said])
    found = theirs | {"Notes": ""} | own
    return "\n\n".join(found[section].rstrip() for section in ("", *_SECTIONS) if found.get(section)) + "\n"


def _sections(text: str) -> dict[str, str]:
    """Split a docstring at its headings; the name of the first part is empty."""
    head, *parts = _HEADING.split(text)
    return {"": head} | {part.partition("\n")[0].strip(): part for part in parts}


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
