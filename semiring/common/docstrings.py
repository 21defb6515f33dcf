"""Docstrings that describe a parameter once for several functions."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["described_by"]

F = TypeVar("F", bound=Callable[..., Any])


def described_by(*others: Callable[..., Any]) -> Callable[[F], F]:
    """What a docstring says of parameters by "As for `other`." is replaced by what that of `other` says of them.

    So the source says it once, and `help` of each function all of it. What follows the reference in the same paragraph stays.
    """

    def complete(function: F) -> F:
        if function.__doc__ is None:  # python -OO
            return function
        before, entries, after = _parts(function)
        named = {other.__name__: {name: entry for entry in _parts(other)[1] for name in entry[0]} for other in others}
        lines = list[str]()
        for names, kind, text in entries:
            reference = re.match(r"    As for `(\w+)`\.\s*", text)
            if reference is None or reference[1] not in named:
                lines += [f"{', '.join(names)}{kind}", *text.splitlines()]
                continue
            theirs, more = named[reference[1]], text[reference.end() :]
            for found in dict.fromkeys(theirs[name] for name in names):
                own = [name for name in names if name in found[0]]
                lines += [f"{', '.join(own)}{found[1]}", *found[2].splitlines(), *([f"    {more}"] if more else [])]
        function.__doc__ = before + "\n".join(lines) + after
        return function

    return complete


@functools.cache
def _parts(function: Callable[..., Any]) -> tuple[str, list[tuple[tuple[str, ...], str, str]], str]:
    """A docstring in three: what comes before its parameters, these (their names, " : type", and what is said of them), and the rest."""
    text = inspect.cleandoc(function.__doc__ or "")
    found = re.search(r"\nParameters\n-+\n(.*?)(?=\n\n\S[^\n]*\n--|\Z)", text, re.DOTALL)
    if found is None:
        return text, [], ""
    entries = re.findall(r"^(\w+(?:, \w+)*)((?: : [^\n]*)?)\n?((?:    [^\n]*(?:\n|\Z))*)", found[1], re.MULTILINE)
    return text[: found.start(1)], [(tuple(names.split(", ")), kind, said.rstrip()) for names, kind, said in entries], text[found.end(1) :]
