"""Write the table of README.md from `benchmarks/data/`: python -m benchmarks.readme.

Each line takes the newest run on its machine, and the fastest peer of the same run. A line without a run is left out.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures import COMPARISONS, Point

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- speed: written by python -m benchmarks.readme -->\n", "<!-- speed: end -->\n"

NOTES = {
    "calls": "float64, beside `floyd_warshall`",
    "contractions": "max-plus; PyTorch contracts the same network over the ordinary algebra",
    "csgraph": "float64; SciPy's time of a complete graph is scaled from 1,000 vertices",
    "exact": "two threads; NumPy multiplies integers on one",
    "pairwise": "64 features; the peers take a fifth of the rows, scaled, and SciPy computes in float64",
    "products": "NumPy multiplies in float32",
    "sparse": "rows out of a factor that was made before; sixteen searches of the peers, scaled",
    "streaming": "8 GiB of the GPU's memory",
}
"""Remarks on the programs."""


def written(seconds: float) -> str:
    """Two digits and a unit, on one line."""
    unit, size = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if seconds >= 0.0995 * s), ("µs", 1e-6))
    return f"{seconds / size:{'#.2g' if seconds < 9.95 * size else '.0f'}}\N{NO-BREAK SPACE}{unit}"


def line(label: str, point: Point, mark: str) -> str:
    """A line of the table."""
    fastest = min(point.peers, key=point.peers.__getitem__, default=None)
    peer = f"{fastest} {written(point.peers[fastest])}" if fastest else ""
    return f"| {label} | {written(point.ours)} | {peer} | {point.run.machine} {mark} |"


def table() -> str:
    """The table and its footnotes, in Markdown."""
    lines, notes = ["", "| what | takes | the fastest peer takes | on |", "|---|---:|---:|---|"], dict[str, str]()
    for comparison in COMPARISONS:
        for machine in comparison.machines:
            for point in comparison.points(machine)[-1:]:
                note = f"`{point.run.command}` ({point.run.date}, commit `{point.run.commit}`)"
                notes[note] = NOTES.get(comparison.benchmark, "")
                mark = str([*notes].index(note) + 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
                lines.append(line(comparison.label, point, mark))
                notes[note] = f"- {mark} {note}{': ' * bool(notes[note])}{notes[note]}."
    return "\n".join([*lines, "", *notes.values(), "", ""])


def text() -> str:
    """README with the table of today's figures."""
    before, begin, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + begin + table() + end + after


if __name__ == "__main__":
    README.write_text(text(), encoding="utf-8")
