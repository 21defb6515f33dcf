"""Docstrings that describe a parameter once for several functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["described_by"]

F = TypeVar("F", bound=Callable[..., Any])


def described_by(*others: Callable[..., Any]) -> Callable[[F], F]:
    """Where a docstring says "As for `other`." of parameters, what that of `other` says of them takes its place.

    So the source says it once, and `help` of each function all of it. What follows the reference in the same paragraph stays. This is
    for the section ``Parameters``: under ``Other Parameters``, which few readers need, a reference stays one.
    """

    def complete(function: F) -> F:
        if function.__doc__ is None:  # python -OO
            return function
        described = {f"As for `{other.__name__}`.": _parsed(other.__doc__ or "")[1] for other in others}
        before, entries, after = _parsed(function.__doc__)
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


@functools.cache
def _parsed(text: str) -> tuple[str, list[tuple[str, list[str], str, list[str]]], str]:
    """A docstring in three: what comes before its parameters, these (margin, names, " : type", lines of what is said), and the rest.

    They end at the first blank line. A margin is what Python before 3.13 leaves of the source's own.
    """
    margin = "" if "\n---" in text else "    "
    heading = f"\n{margin}Parameters\n{margin}----------\n"
    before, _, rest = text.partition(heading)
    block, blank, after = rest.partition("\n\n")
    entries = list[tuple[str, list[str], str, list[str]]]()
    for line in block.splitlines():
        if line.startswith(f"{margin} "):
            entries[-1][3].append(line)
        else:
            names, colon, kind = line.partition(" : ")
            entries.append((margin, names.strip().split(", "), colon + kind, []))
    return before + heading, entries, blank + after
