"""The small pictures on the front page's cards: python -m docs.pictures.thumbnails writes them to docs/static/thumbnails/.

Lines and areas in two colours that can be seen on white and on black. The icon of the site is made here too.
"""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parents[1] / "static"
GREY, COLOUR, OTHER = "#7c8490", "#2f8fd0", "#c67a12"


def box(x: float, y: float, width: float, height: float, colour: str, opacity: float = 1) -> str:
    """Draw a filled rectangle."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="1.5" fill="{colour}" fill-opacity="{opacity:g}"/>'


def text(x: float, y: float, words: str, colour: str = GREY, size: int = 13, anchor: str = "start") -> str:
    """Write text in a monospaced font."""
    return f'<text x="{x}" y="{y}" fill="{colour}" font-size="{size}" text-anchor="{anchor}" font-family="monospace">{words}</text>'


def tutorial() -> str:
    """Draw a session of Python."""
    answer = text(4, 31, "array([[0., 3., 7.],", size=11) + text(50, 47, "[6., 0., 4.],", size=11) + text(50, 63, "[2., 5., 0.]])", size=11)
    return text(4, 14, "&gt;&gt;&gt; sr.apsp(roads)", COLOUR, 11) + answer


def howto() -> str:
    """Draw a table of edges."""
    cells = [("from", "to", "km"), ("Zurich", "Bern", "125"), ("Bern", "Genf", "160"), ("Basel", "Genf", "250")]
    return "".join(
        box(14, 4 + 17 * row, 112, 15, COLOUR if row == 0 else GREY, 0.25 if row == 0 else 0.12)
        + text(18, 15 + 17 * row, tail, size=10)
        + text(66, 15 + 17 * row, head, size=10)
        + text(122, 15 + 17 * row, weight, size=10, anchor="end")
        for row, (tail, head, weight) in enumerate(cells)
    )


def how_it_works() -> str:
    """Draw a matrix of blocks in a round of the blocked closure: the pivot, its row and column, and the rest."""
    side, pivot = 5, 1
    blocks = []
    for i in range(side):
        for j in range(side):
            colour = OTHER if i == j == pivot else COLOUR if pivot in (i, j) else GREY
            blocks.append(box(34 + 15 * j, 1 + 14 * i, 13, 12, colour, 0.25 if colour is GREY else 0.85))
    return "".join(blocks)


def benchmarks() -> str:
    """Draw bars."""
    return "".join(box(12, 6 + 16 * row, width, 11, COLOUR if row == 0 else GREY, 0.85) for row, width in enumerate((8, 30, 66, 116)))


def reference() -> str:
    """Draw a signature."""
    return text(8, 24, "apsp(graph, *,", COLOUR, 12) + text(22, 42, "paths=False,", size=12) + text(22, 60, "dtype=None, …)", size=12)


def notebooks() -> str:
    """Draw a heat map."""
    return "".join(box(18 + 13 * j, 2 + 13.5 * i, 12, 12.5, COLOUR, 0.1 + 0.17 * abs(i - 0.6 * j)) for i in range(5) for j in range(8))


def drop_in() -> str:
    """Draw the line that changes."""
    changed = text(6, 40, "+ from semiring", COLOUR, 11)
    return text(6, 22, "- from scipy.sparse", size=11) + changed + text(19, 58, "import csgraph", size=11)


def icon() -> str:
    """Draw ⊕, the icon of the site."""
    ring = f'<circle cx="16" cy="16" r="12" fill="none" stroke="{COLOUR}" stroke-width="3"/>'
    return f'{ring}<path stroke="{COLOUR}" stroke-width="3" d="M16 4V28M4 16H28"/>'


def svg(inside: str, width: int = 140, height: int = 72) -> str:
    """Return the whole file."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">{inside}</svg>\n'


PICTURES = (tutorial, howto, how_it_works, benchmarks, reference, notebooks, drop_in)

if __name__ == "__main__":
    (STATIC / "thumbnails").mkdir(exist_ok=True)
    for picture in PICTURES:
        (STATIC / "thumbnails" / f"{picture.__name__}.svg").write_text(svg(picture()), encoding="utf-8")
    (STATIC / "icon.svg").write_text(svg(icon(), 32, 32), encoding="utf-8")
