"""The pictures of docs/speed-over-time.md: python -m docs.pictures.speed writes them to docs/static/speed/.

One picture for each kind of machine shows the comparisons of `benchmarks.figures` that were measured on this kind: seconds by date.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from benchmarks.figures import COMPARISONS, DATA, Point, read
from benchmarks.readme import written
from docs.pictures.thumbnails import COLOUR, GREY, OTHER

FOLDER = Path(__file__).parents[1] / "static" / "speed"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 450, 150, 54, 290, 30, 120
"""The place of a panel, and of the plot in it."""


def machines() -> list[str]:
    """Kinds of machines with something to show."""
    known = {figure.machine for path in sorted(DATA.glob("*.csv")) for figure in read(path.stem)}
    return sorted(machine for machine in known if any(comparison.points(machine) for comparison in COMPARISONS))


def file(machine: str) -> str:
    """Name the file of a kind of machine."""
    return f"{machine.lower().replace(' ', '-')}.svg"


def day(point: Point) -> int:
    """Return the date of a run as a number."""
    return date.fromisoformat(point.run.date).toordinal()


def panel(label: str, points: Sequence[Point], first: int, last: int) -> str:
    """Draw one comparison: a line for this library and for each peer, on a logarithmic scale."""
    series: dict[str, list[tuple[int, float]]] = {}
    for point in points:
        for name, seconds in (("semiring", point.ours), *point.peers.items()):
            series.setdefault(name, []).append((day(point), seconds))
    values = [math.log10(seconds) for line in series.values() for _, seconds in line]
    low, high = math.floor(min(values)), max(math.ceil(max(values)), math.floor(min(values)) + 1)

    def x(number: int) -> float:
        return LEFT + 12 + (RIGHT - LEFT - 24) * ((number - first) / (last - first) if last > first else 0.5)

    def y(seconds: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (math.log10(seconds) - low) / (high - low)

    parts = [f'<text x="{LEFT}" y="18" font-weight="bold">{label}</text>']
    for decade in range(low, high + 1):
        at = y(10.0**decade)
        parts.append(f'<path stroke="{GREY}" stroke-opacity=".4" d="M{LEFT} {at:.1f}H{RIGHT}"/>')
        unit, shift = ("s", 0) if decade >= 0 else ("ms", 3) if decade >= -3 else ("µs", 6)
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10 ** (decade + shift)} {unit}</text>')
    for end in sorted({first, last}):
        parts.append(f'<text x="{x(end):.1f}" y="{BOTTOM + 18}" text-anchor="middle">{date.fromordinal(end)}</text>')
    below = -math.inf
    for name, line in sorted(series.items(), key=lambda item: -item[1][-1][1]):
        colour = COLOUR if name == "semiring" else OTHER
        places = [(f"{x(number):.1f}", f"{y(seconds):.1f}") for number, seconds in line]
        way, dots = "L".join(map(" ".join, places)), "".join(f'<circle cx="{left}" cy="{top}" r="3.5"/>' for left, top in places)
        below = max(y(line[-1][1]) + 4, below + 15)
        said = f'<text x="{RIGHT + 8}" y="{below:.1f}">{name} {written(line[-1][1])}</text>'
        parts.append(f'<g fill="{colour}"><path fill="none" stroke="{colour}" stroke-width="2" d="M{way}"/>{dots}{said}</g>')
    return "".join(parts)


def picture(machine: str) -> str:
    """Return all comparisons of a kind of machine as an SVG, two panels in a row."""
    shown = {comparison.label: points for comparison in COMPARISONS if (points := comparison.points(machine))}
    days = [day(point) for points in shown.values() for point in points]
    height = HEIGHT * math.ceil(len(shown) / 2)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {height}" role="img" font-family="sans-serif" font-size="13"'
    panels = [
        f'<g transform="translate({number % 2 * WIDTH} {number // 2 * HEIGHT})">{panel(label, points, min(days), max(days))}</g>'
        for number, (label, points) in enumerate(shown.items())
    ]
    return "\n".join([f'{head} fill="{GREY}">', f"<title>Seconds of calls on {machine}, by date</title>", *panels, "</svg>\n"])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for machine in machines():
        (FOLDER / file(machine)).write_text(picture(machine), encoding="utf-8")
