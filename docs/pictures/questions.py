"""The small graphs of docs/questions.md: python -m docs.pictures.questions writes them to docs/static/questions/.

Each graph has the vertices A, B, C, D. The edges of the answer are coloured, in colours that can be read on white and on black.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "static" / "questions"
PLACES = {"A": (26, 70), "B": (130, 24), "C": (130, 116), "D": (234, 70)}
RADIUS = 15
GREY, COLOUR = "#7c8490", "#2f8fd0"
EVERY = "AB AC CB BD CD"


class Question(NamedTuple):
    """Labels of the edges, the edges of the answer, and the answer."""

    weights: str
    answer: str
    said: str


ROADS = "AB:4 AC:1 CB:2 BD:3 CD:7"
ONES = "AB:1 AC:1 CB:1 BD:1 CD:1"
QUESTIONS = {
    "shortest": Question(ROADS, "AC CB BD", "1 + 2 + 3 = 6"),
    "reachable": Question("AB: AC: CB: BD: CD:", "AB BD", "yes"),
    "widest": Question(ROADS, "AB BD", "min(4, 3) = 3"),
    "minimax": Question(ROADS, "AC CB BD", "max(1, 2, 3) = 3"),
    "reliable": Question("AB:.5 AC:.9 CB:.9 BD:.9 CD:.7", "AC CB BD", ".9 · .9 · .9 = .729"),
    "longest": Question(ROADS, "AC CD", "1 + 7 = 8"),
    "count": Question("AB:2 AC:1 CB:1 BD:1 CD:3", "AB AC CB BD", "2 of length 3"),
    "hops": Question("AB:2 AC:1 CB:1 BD:1 CD:3", "AB BD", "length 3, 2 edges"),
    "sums": Question("AB:.5 AC:.5 CB:.2 BD:.5 CD:.8", EVERY, ".25 + .05 + .4 = .7"),
    "logarithms": Question("AB:−.7 AC:−.7 CB:−1.6 BD:−.7 CD:−.2", EVERY, "log .7 = −.36"),
    "parity": Question(ONES, EVERY, "3 paths: odd"),
    "sets": Question("AB:{a,b} AC:{a} CB:{a} BD:{b} CD:{a}", EVERY, "{b} ∪ {a}"),
    "steps": Question(ONES, "AB BD AC CD", "2 ways by two edges"),
}


def picture(question: Question) -> str:
    """Return the graph as an SVG."""
    answer = question.answer.split()
    parts = []
    for edge, _, weight in sorted((part.partition(":") for part in question.weights.split()), key=lambda part: part[0] in answer):
        (x1, y1), (x2, y2) = PLACES[edge[0]], PLACES[edge[1]]
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        colour, width = (COLOUR, 3) if edge in answer else (GREY, 1.5)
        tip = x2 - (RADIUS + 2) * dx, y2 - (RADIUS + 2) * dy
        head = [tip, (tip[0] - 9 * dx - 5 * dy, tip[1] - 9 * dy + 5 * dx), (tip[0] - 9 * dx + 5 * dy, tip[1] - 9 * dy - 5 * dx)]
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in head)
        parts.append(
            f'<g stroke="{colour}" fill="{colour}"><path stroke-width="{width}" '
            f'd="M{x1 + RADIUS * dx:.1f} {y1 + RADIUS * dy:.1f}L{tip[0] - 7 * dx:.1f} {tip[1] - 7 * dy:.1f}"/>'
            f'<path stroke="none" d="M{corners}Z"/></g>'
        )
        beside = -1 if y1 + y2 < 140 else 1  # above the upper edges, below the lower edges, right of the middle edge
        x, y = ((x1 + x2) / 2 + 10, (y1 + y2) / 2 + 5) if x1 == x2 else ((x1 + x2) / 2 + dy * 9, (y1 + y2) / 2 + 5 + 16 * beside)
        anchor = "start" if x1 == x2 else "middle"
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{weight}</text>')
    for name, (x, y) in PLACES.items():
        parts.append(f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="none" stroke="{GREY}" stroke-width="1.5"/>')
        parts.append(f'<text x="{x}" y="{y + 5}" fill="{GREY}" text-anchor="middle" font-weight="bold">{name}</text>')
    parts.append(f'<text x="130" y="160" fill="{COLOUR}" text-anchor="middle" font-weight="bold">{question.said}</text>')
    head_line = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 170" role="img" font-family="sans-serif" font-size="15">'
    return "\n".join([head_line, *parts, "</svg>\n"])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, question in QUESTIONS.items():
        (FOLDER / f"{name}.svg").write_text(picture(question), encoding="utf-8")
