"""The demo of the README: find all shortest routes of the US airport network.

The PyPI package bokeh_sampledata brings the airports and routes (public-domain data of OurAirports and of the US Bureau of
Transportation Statistics).
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.conversion import Array
from semiring.common.errors import install_of
from semiring.common.units import duration
from semiring.config import installed

__all__ = ["Airports", "load_airports", "run_demo"]

EARTH_RADIUS_KM = 6371.0088
JOURNEYS = (("BRW", "EYW"), ("ADK", "PQI"), ("CDV", "PBG"), ("STC", "PIR"))
"""Journeys to print: from the Arctic to the Caribbean, from coast to coast, the most stops, the longest detour."""


class Airports(NamedTuple):
    """Airports of a network, and the distances of the routes between them.

    Attributes
    ----------
    labels : tuple of str
        IATA codes, in the order of the rows.
    names : tuple of str
    latitude, longitude : float64 array
        In degrees.
    distances : float64 array of shape (n, n)
        Great-circle distances in km of the routes, ∞ without a route, 0 on the diagonal.
    """

    labels: tuple[str, ...]
    names: tuple[str, ...]
    latitude: Array
    longitude: Array
    distances: Array


def load_airports() -> Airports:
    """Load the US airport network of bokeh_sampledata: all airports with a route, and the directed routes.

    The function reads the data files of the package directly, without importing bokeh_sampledata or pandas.

    Examples
    --------
    >>> airports = load_airports()  # doctest: +SKIP
    >>> airports.labels[:3]  # doctest: +SKIP
    ('ABE', 'ABI', 'ABQ')

    Raises
    ------
    ModuleNotFoundError
        If bokeh_sampledata is not installed; the message names the extra that installs it.
    """
    folder = _data_folder()
    routes = _rows(folder, "routes.csv")
    used = {row[end] for row in routes for end in ("SourceID", "DestinationID")}
    rows = [row for row in _rows(folder, "airports.csv") if row["AirportID"] in used]
    number = {row["AirportID"]: i for i, row in enumerate(rows)}
    latitude, longitude = (np.array([float(row[axis]) for row in rows]) for axis in ("Latitude", "Longitude"))
    apart = great_circle(latitude[:, None], longitude[:, None], latitude, longitude)
    distances = np.full_like(apart, np.inf)
    np.fill_diagonal(distances, 0)
    for row in routes:
        if row["SourceID"] in number and row["DestinationID"] in number:
            route = number[row["SourceID"]], number[row["DestinationID"]]
            distances[route] = apart[route]
    labels = tuple(row["IATA"] if row["IATA"].isalnum() else row["ICAO"] for row in rows)
    return Airports(labels, tuple(row["Name"] for row in rows), latitude, longitude, distances)


def great_circle(latitude: Array, longitude: Array, other_latitude: Array, other_longitude: Array) -> Array:
    """Return great-circle distances in km between points in degrees, by the haversine formula; the arguments broadcast."""
    phi, theta, other_phi, other_theta = map(np.radians, (latitude, longitude, other_latitude, other_longitude))
    haversine = np.sin((phi - other_phi) / 2) ** 2 + np.cos(phi) * np.cos(other_phi) * np.sin((theta - other_theta) / 2) ** 2
    return np.asarray(2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(haversine)))


def _data_folder() -> Path:
    package = importlib.util.find_spec("bokeh_sampledata")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError(f"the demo needs the airport data of the package bokeh_sampledata: {install_of('demo')}")
    return Path(package.submodule_search_locations[0]) / "_data"


def _rows(folder: Path, name: str) -> list[dict[str, str]]:
    """Read a CSV file, which only newer releases of the package compress."""
    packed = folder / f"{name}.gz"
    raw = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / name).read_bytes()
    return list(csv.DictReader(io.StringIO(raw.decode("utf-8"))))


def run_demo() -> None:
    """Print the network, a few shortest routes, the diameter, the time, and a comparison with SciPy."""
    from semiring.solve import apsp

    airports = load_airports()
    n = len(airports.labels)
    flown = np.isfinite(airports.distances).sum() - n
    first, _ = _timed(lambda: apsp(airports.distances, paths=True))  # loads the kernels
    seconds, shortest = _timed(lambda: apsp(airports.distances, paths=True))
    connected = np.isfinite(shortest.distances).sum() - n
    print(f"US airport network (bokeh_sampledata {installed('bokeh_sampledata')})")
    print(f"  {n} airports, {flown:,} one-way routes, {connected:,} of {n * (n - 1):,} ordered pairs connected")
    print(f"  all shortest distances and the routes themselves: {duration(seconds)} ({duration(first)} the first time)")
    for ends in JOURNEYS:
        if set(ends) <= set(airports.labels):
            source, target = map(airports.labels.index, ends)
            if np.isfinite(shortest.distances[source, target]):
                _print_route(airports, shortest, source, target)
    source, target, _ = shortest.farthest()[0]
    print("\nThe diameter of the network, between the farthest connected pair:", end="")
    _print_route(airports, shortest, source, target)
    print()
    _compare_with_scipy(airports.distances, shortest.distances)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that `work` takes, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _print_route(airports: Airports, shortest: Any, source: int, target: int) -> None:
    route = shortest.path(source, target)
    latitude, longitude = airports.latitude, airports.longitude
    apart = great_circle(latitude[source], longitude[source], latitude[target], longitude[target])
    total = shortest.distances[source, target]
    print(f"\n{airports.labels[source]} → {airports.labels[target]}: {total:,.0f} km ({apart:,.0f} km apart)")
    print(f"  {'':>9}  {airports.labels[source]}  {airports.names[source]}")
    for u, v in itertools.pairwise(route):
        print(f"  {airports.distances[u, v]:>6,.0f} km  {airports.labels[v]}  {airports.names[v]}")


def _compare_with_scipy(distances: Array, shortest: Array) -> None:
    """Print the time that SciPy takes, if installed, and the largest difference of the distances."""
    try:
        from scipy.sparse.csgraph import csgraph_from_dense, shortest_path
    except ImportError:
        print(f"SciPy is not installed, so the comparison is left out: {install_of('demo')}")
        return
    seconds, theirs = _timed(lambda: shortest_path(csgraph_from_dense(distances, null_value=np.inf)))
    connected, connected_here = np.isfinite(theirs), np.isfinite(shortest)
    known = connected & connected_here
    difference = np.abs(theirs[known] - shortest[known]).max(initial=0)
    verdict = "the same pairs connected" if np.array_equal(connected, connected_here) else "OTHER PAIRS CONNECTED"
    print(f"SciPy's shortest_path: {verdict}, largest difference {difference:.1e} km; {duration(seconds)}, distances only")
