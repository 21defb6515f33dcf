"""Decimal commas in the fields of a text."""

from __future__ import annotations

import re

from semiring.files.fields import Line, WrongLine

__all__ = ["has_decimal_comma", "not_a_number", "with_points"]

_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(e[+-]?[0-9]+)?", re.IGNORECASE)
_POINT = re.compile(r"[+-]?[0-9]*\.[0-9]+(e[+-]?[0-9]+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")


def not_a_number(text: str) -> str:
    """Say that a text is no number, and what the comma in it may mean."""
    commas = "; if the comma is the decimal mark, pass decimal=','; if the comma separates thousands, remove it"
    return f"{text!r} is not a number{commas * has_decimal_comma(text)}"


def has_decimal_comma(text: str) -> bool:
    """Return True for 1,5 and for 1,500, which may also have a separator of thousands."""
    return bool(_COMMA.fullmatch(text))


def with_points(lines: list[Line], separator: str, decimal: str | None) -> list[Line]:
    """Replace decimal commas by points if the caller asks for this, or if the commas in numbers cannot mean anything else.

    A comma cannot mean anything else if another character separates the fields, no number has a point, and one number, such as 1,5, is no
    group of thousands. The first two fields may be names, such as 1,5, and prove nothing. Raises WrongLine for points beside `decimal` ",".
    """
    if decimal == "." or (decimal is None and separator == ","):
        return lines
    pointed = next(((at, field) for at, fields in lines for field in fields if "." in field and _POINT.fullmatch(field)), None)
    if decimal is None:
        candidates = (field for _, fields in lines for field in fields[2:] or fields if "," in field)
        if pointed is not None or not any(_COMMA.fullmatch(field) and not _THOUSANDS.fullmatch(field) for field in candidates):
            return lines
    elif pointed is not None:
        raise WrongLine(pointed[0], f"{pointed[1]!r} has a decimal point, though decimal=',' says that numbers have commas")
    return [(at, [f.replace(",", ".") if "," in f and _COMMA.fullmatch(f) else f for f in fields]) for at, fields in lines]
