"""Pieces of HTML for Jupyter: small tables in the colours of the page, light or dark, without scripts or external files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["BAR", "Code", "Shown", "bars", "beside", "code", "escape", "faint", "folded", "grid", "short", "table"]

BAR = "rgb(42,157,143)"
"""The colour of bars, on light and dark pages."""

_PLAIN = "background:none;color:inherit"
_LINE = "1px solid rgba(128,128,128,0.35)"
_TABLE = f"border-collapse:collapse;border:none;margin:0.3em 0;{_PLAIN}"
_CELL = f"text-align:left;padding:0.15em 0.8em;vertical-align:top;border:none;{_PLAIN}"
_NUMBER = f"text-align:right;padding:0.1em 0.6em;border:none;white-space:nowrap;{_PLAIN}"


def escape(text: str) -> str:
    """Escape a plain text."""
    import html  # its table of characters takes a while to load, and few sessions show HTML

    return html.escape(text)


def table(title: str, rows: Iterable[Iterable[str]]) -> str:
    """Make a table with a title. Title and cells are HTML; the first cell of a row names the others."""
    body = "".join(f"<tr style='{_PLAIN};border:none'>{_cells(row)}</tr>" for row in rows)
    caption = f"<caption style='{_CELL};caption-side:top;font-weight:bold;border-bottom:{_LINE}'>{title}</caption>"
    return f"<table style='{_TABLE}'>{caption}<tbody>{body}</tbody></table>"


def _cells(row: Iterable[str]) -> str:
    first, *others = row
    return f"<td style='{_CELL};white-space:nowrap'>{first}</td>" + "".join(f"<td style='{_CELL}'>{cell}</td>" for cell in others)


def grid(corner: str, columns: Iterable[str], rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Make a table of numbers with a head and a first column, all HTML."""
    rule = f"{_NUMBER};font-weight:bold;border-bottom:{_LINE}"
    head = "".join(f"<th style='{rule}'>{column}</th>" for column in (corner, *columns))
    body = "".join(
        f"<tr style='{_PLAIN};border:none'><th style='{_NUMBER};font-weight:bold;border-right:{_LINE}'>{name}</th>"
        + "".join(f"<td style='{_NUMBER}'>{cell}</td>" for cell in cells)
        + "</tr>"
        for name, cells in rows
    )
    return f"<table style='{_TABLE}'><thead><tr style='{_PLAIN};border:none'>{head}</tr></thead><tbody>{body}</tbody></table>"


def bars(rows: Iterable[tuple[str, float, str]]) -> str:
    """Make horizontal bars: names, lengths from 0 on, and labels, as plain text."""
    rows = list(rows)
    longest = max((length for _, length, _ in rows), default=0) or 1
    body = "".join(
        f"<tr style='{_PLAIN};border:none'><td style='{_CELL};padding-left:0;white-space:nowrap'>{escape(name)}</td>"
        f"<td style='{_CELL};padding-left:0;width:8em;vertical-align:middle'>"
        f"<div style='height:0.6em;min-width:1px;width:{100 * length / longest:.3g}%;background:{BAR}'></div></td>"
        f"<td style='{_CELL};padding-left:0;white-space:nowrap'>{escape(text)}</td></tr>"
        for name, length, text in rows
    )
    return f"<table style='{_TABLE};margin:0'><tbody>{body}</tbody></table>"


def beside(*parts: str) -> str:
    """Put parts side by side on a wide page."""
    inside = "".join(f"<div>{part}</div>" for part in parts)
    return f"<div style='display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start;{_PLAIN}'>{inside}</div>"


def folded(summary: str, text: str) -> str:
    """Make a line that opens to a long text."""
    scrolled = f"max-height:30em;overflow:auto;padding:0.5em 0.8em;border-left:{_LINE};font-size:90%;{_PLAIN}"
    line = f"<summary style='cursor:pointer;{_PLAIN}'>{summary}</summary>"
    return f"<details style='{_PLAIN}'>{line}<pre style='{scrolled}'>{escape(text)}</pre></details>"


def code(text: Any) -> str:
    """Format a text as code."""
    return f"<code style='{_PLAIN};padding:0;white-space:pre-wrap'>{escape(str(text))}</code>"


def faint(text: str) -> str:
    """Format a text as a remark."""
    return f"<span style='opacity:0.7'>{escape(text)}</span>"


def short(text: str, width: int) -> str:
    """Cut a text to a width."""
    return text if len(text) <= width else text[: width - 1] + "…"


class Shown:
    """A result that Jupyter shows as a table of `facts`."""

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return a title, and names with values, as plain text."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        title, rows = self.facts()
        return table(escape(title), ((faint(name), escape(text)) for name, text in rows))


class Code(str):
    """Generated source code: a text that Jupyter shows folded under its `heading`."""

    heading: str

    def __new__(cls, text: str, heading: str = "") -> Code:
        """Make a text with a heading."""
        made = super().__new__(cls, text)
        made.heading = heading
        return made

    def _repr_html_(self) -> str:
        return folded(f"{escape(self.heading)} {faint(f'({len(self.splitlines()):,} lines)')}", self)
