"""The map of the README and of the front page: python -m docs.pictures.airports writes docs/static/airports.svg.

The program computes every shortest route between two airports of the demo's network. Lines and airports grow with the number of routes
that pass. Three routes from end to end have colours that can be read on white and on black.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import semiring as sr
from semiring.arrays.conversion import Array
from semiring.demo import load_airports

PICTURE = Path(__file__).parents[1] / "static" / "airports.svg"
ROUTES = {("BRW", "EYW"): "#d9485f", ("ADK", "PQI"): "#2f8fd0", ("STC", "PIR"): "#c67a12"}
GREY = "#7c8490"
WIDTH, MARGIN = 860, 24
WEST, EAST = "LIH", "STX"  # the map reaches from Hawaii to the Virgin Islands


def project(latitude: Array, longitude: Array, centre: tuple[float, float] = (48, -112)) -> Array:
    """Project by Lambert's equal-area projection around `centre`, to x (east) and y (south), in radii of the earth."""
    phi, theta, phi0 = np.radians(latitude), np.radians(np.subtract(longitude, centre[1])), np.radians(centre[0])
    cosine = np.sin(phi0) * np.sin(phi) + np.cos(phi0) * np.cos(phi) * np.cos(theta)
    scale = np.sqrt(2 / (1 + cosine))
    north = np.cos(phi0) * np.sin(phi) - np.sin(phi0) * np.cos(phi) * np.cos(theta)
    return np.array([scale * np.cos(phi) * np.sin(theta), -scale * north])


def line(points: Iterable[Array]) -> str:
    """Return the points as an SVG path, rounded to half a unit."""
    return "M" + "L".join(f"{round(2 * x) / 2:g} {round(2 * y) / 2:g}" for x, y in points)


def dot(place: Array, radius: float) -> str:
    """Draw an airport."""
    return f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{radius:.1f}"/>'


def name(place: Array, label: str) -> str:
    """Draw the name of an airport."""
    return f'<text x="{place[0] + 6:.1f}" y="{place[1] - 6:.1f}" font-weight="bold">{label}</text>'


def thinned(points: Array, apart: float = 1.5) -> list[Array]:
    """Thin out an outline: drop points closer than `apart` to the previous point."""
    kept = [points[0]]
    for point in points:
        if np.hypot(*(point - kept[-1])) >= apart:
            kept.append(point)
    return kept


def outlines() -> list[Array]:
    """Return longitudes and latitudes of the states, one array of shape (2, n) for each connected part."""
    from bokeh_sampledata.us_states import data

    parts = []
    for state in data.values():
        points = np.array([state["lons"], state["lats"]], float)
        cuts = np.flatnonzero(np.isnan(points[0]))
        parts += [np.delete(part, np.flatnonzero(np.isnan(part[0])), axis=1) for part in np.split(points, cuts, axis=1)]
    return [part for part in parts if part.shape[1]]


def picture() -> str:
    """Return the map as an SVG."""
    airports = load_airports()
    labels = airports.labels
    shortest = sr.apsp(airports.distances, paths=True)
    every_route = [route for source in range(len(labels)) for route in shortest.paths_from(source)]
    through = Counter(stop for route in every_route for stop in route[1:-1])
    flown = Counter((min(leg), max(leg)) for route in every_route for leg in itertools.pairwise(route))

    places = project(airports.latitude, airports.longitude)
    left, right = places[0, labels.index(WEST)], places[0, labels.index(EAST)]
    scale = (WIDTH - 2 * MARGIN) / (right - left)
    inside = (places[0] >= left) & (places[0] <= right)
    top, bottom = places[1, inside].min(), places[1, inside].max()
    height = round(scale * (bottom - top) + 2 * MARGIN)

    def on_page(points: Array) -> Array:
        """Place projected points of shape (2, n) on the page; the result has shape (n, 2)."""
        return np.asarray(scale * (points - np.array([[left], [top]])).T + MARGIN)

    at = on_page(places)
    land = [thinned(on_page(project(latitude, longitude))) for longitude, latitude in outlines()]
    land = [part for part in land if len(part) > 3 and np.min(part) > 0]
    strength = {leg: min(4, int(np.log2(count) / 2.6)) for leg, count in flown.items() if inside[list(leg)].all()}
    title = f"Shortest routes between any two of {len(labels)} airports of the USA"
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" font-family="sans-serif" font-size="17">',
        f"<title>{title}</title>",
        f'<path fill="{GREY}" fill-opacity=".16" d="{"".join(line(part) + "Z" for part in land)}"/>',
    ]
    for level in sorted(set(strength.values())):
        legs = "".join(line(at[list(leg)]) for leg in sorted(strength) if strength[leg] == level)
        faint = f"{0.05 + 0.06 * level:.2f}"
        body.append(f'<path stroke="{GREY}" stroke-opacity="{faint}" stroke-width="{0.5 + 0.2 * level:.1f}" d="{legs}"/>')
    dots = "".join(dot(place, 1.2 + through[airport] ** 0.5 / 26) for airport, place in enumerate(at) if inside[airport])
    body.append(f'<g fill="{GREY}">{dots}</g>')
    named: set[int] = set()
    for row, ((source, target), colour) in enumerate(ROUTES.items()):
        ends = labels.index(source), labels.index(target)
        route = shortest.path(*ends)
        stops = "".join(dot(at[stop], 4) for stop in route)
        names = "".join(name(at[stop], labels[stop]) for stop in route if stop not in named)
        named.update(route)
        said = " → ".join(labels[stop] for stop in route) + f": {shortest.distances[ends]:,.0f} km"
        body.append(f'<g fill="{colour}"><path fill="none" stroke="{colour}" stroke-width="2.5" d="{line(at[route])}"/>{stops}{names}')
        body.append(f'<text x="{WIDTH - MARGIN}" y="{MARGIN + 25 * row}" text-anchor="end" font-size="18">{said}</text></g>')
    return "\n".join([*body, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
