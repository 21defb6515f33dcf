"""Paths on a map of the graph, and elements as a heat map, drawn by Matplotlib for pages light and dark.

Nothing has a background; text and lines are in a grey that is legible on white and on black. Places for the vertices come from
multidimensional scaling: distances in the picture approximate distances in the graph.

- Classical scaling (Torgerson, 1952) takes the two directions in which squared distances vary most. For many vertices, the distances to a
  few pivots are enough (Brandes and Pich, 2007).
- Majorization of the stress (de Leeuw's SMACOF, with the weights of Kamada and Kawai) then separates coincident vertices, such as the
  leaves of a star.

The components of a graph are placed side by side.

Examples
--------
>>> square = layout(4, np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]), np.ones(4))
>>> sides = np.linalg.norm(square - np.roll(square, 1, axis=0), axis=1)
>>> bool(np.ptp(sides) < 0.01)
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.components import weak_of_edges
from semiring.algorithms.csr import CSR, combine_runs, in_order
from semiring.algorithms.divergence import is_min_plus
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.algorithms.search import searches_for
from semiring.arrays.conversion import Array
from semiring.common.errors import GraphError, library, printable
from semiring.common.html import short
from semiring.results.store import Store
from semiring.results.views import COLOURS, as_floats, number, sampled

__all__ = ["heatmap", "layout", "plot"]

_GREY, _BLUE = "#808080", "#6489c5"
_ROUTES = ("#e76f51", "#2a9d8f", "#d9a520", "#b565c9", "#8ab84a", "#e0629a")

_MANY = 2000  # vertices from which on they are points in a raster, to keep files small
_NAMED = 50  # most vertices that are named
_ARROWS, _DRAWN, _READ = 400, 200_000, 1 << 22  # most edges with arrows; most drawn edges; most edges read for a layout
_STOPS = 12  # vertices of the longest path that is named throughout; longer ones are named at the ends
_BEND = 0.2  # bend of an edge around a vertex, relative to its length
_SIDES = 600, 128  # most rows and columns of a heat map, in memory and from a file
_TICKS = 16  # most names along a side of a heat map
_ALL, _PIVOTS = 500, 50  # most vertices for whose layout all distances are used; pivots of larger graphs
_ROUNDS = 50  # of the majorization


def plot(found: Store, pos: Any, highlight: Any, ax: Any) -> Any:
    """See `Paths.plot`."""
    routes = _routes(found, highlight)
    places = None if pos is None else _given(found, pos)
    edges = _edges(found)
    if places is None:
        if edges is None:
            raise GraphError(f"a layout is found for up to {_READ:,} edges, and there are more; pass pos=, a place for each vertex")
        places = layout(found.names.n, edges[0], edges[1], _lengths(found, edges[2]))
    ax = _axes(ax, "plot", (7, 5))
    ax.set_axis_off()
    ax.set_aspect("equal")
    _room(ax, places)
    if edges is not None:
        _draw_edges(ax, places, edges[0], edges[1], behind=bool(routes))
    n = found.names.n
    on_routes = {v for path in routes.values() for v in path}
    others = np.setdiff1d(np.arange(n), np.array(sorted(on_routes), dtype=np.intp))
    size = float(np.clip(2000 / max(n, 1), 2, 40))
    ax.scatter(*places[others].T, s=size, color=_BLUE, linewidths=0, zorder=2, rasterized=n > _MANY)
    if n <= _NAMED:
        _write_names(ax, found, places, others.tolist(), _GREY)
    if routes:
        _draw_routes(ax, found, places, routes)
    return ax


def _axes(ax: Any, method: str, size: tuple[float, float]) -> Any:
    pyplot = library("matplotlib.pyplot", method)
    if ax is not None:
        return ax
    _, ax = pyplot.subplots(figsize=size, layout="constrained", facecolor="none")
    ax.patch.set_alpha(0)
    return ax


def _routes(found: Store, highlight: Any) -> dict[tuple[int, int], list[int]]:
    """Return the paths of the highlighted pairs, by row and column."""
    if highlight is None:
        return {}
    names = found.names
    wrong = f"highlight is {highlight!r}; pass a pair of vertices, (source, target), or a list of pairs"
    if isinstance(highlight, str) or not isinstance(highlight, Iterable):
        raise GraphError(wrong)
    pairs = list(highlight)
    if len(pairs) == 2 and all(node in names for node in pairs):
        pairs = [(pairs[0], pairs[1])]
    single = [not isinstance(pair, Sequence) or isinstance(pair, str) for pair in pairs]
    if len(pairs) == 2 and all(single):  # raises for the unknown vertex
        found.place(*pairs)
    if any(single) or any(len(pair) != 2 for pair in pairs):
        raise GraphError(wrong)
    placed = [found.place(*pair) for pair in pairs]
    ends = np.array(placed, dtype=np.intp).reshape(-1, 2)
    return dict(zip(placed, found.find(ends[:, 0], ends[:, 1]), strict=True))


def _given(found: Store, pos: Any) -> Array:
    names = found.names
    if isinstance(pos, Mapping):
        for node in names.nodes:
            if node not in pos:
                raise GraphError(f"pos has no place for the vertex {node!r}; it needs one, (x, y), for each of the {names.n}")
        pos = [pos[node] for node in names.nodes]
    try:
        places = np.asarray(pos, dtype=np.float64)
    except (TypeError, ValueError):
        places = np.empty(0)
    if names.n == 0 and not places.size:
        return np.empty((0, 2))
    if places.shape != (names.n, 2) or not np.isfinite(places).all():
        raise GraphError(f"pos needs a place for each vertex: a dict of (x, y), or an array of shape ({names.n}, 2), of finite numbers")
    return places


def _edges(found: Store) -> tuple[Array, Array, Array] | None:
    """Return the edges between different vertices; None for more than `_READ`."""
    parts, count = [], 0
    for tails, heads, weights in found.edges():
        apart = tails != heads
        parts.append((tails[apart], heads[apart], weights[apart]))
        count += len(parts[-1][0])
        if count > _READ:
            return None
    if not parts:
        none = np.empty(0, np.intp)
        return none, none, none
    tails, heads, weights = map(np.concatenate, zip(*parts, strict=True))
    return tails, heads, weights


def _lengths(found: Store, weights: Array) -> Array:
    """Return the lengths of edges: nonnegative weights over min-plus, else 1."""
    if is_min_plus(found.semiring) and weights.dtype.kind in "iuf" and (weights >= 0).all() and (weights > 0).any():
        return weights.astype(np.float64)
    return np.ones(len(weights))


def _room(ax: Any, places: Array) -> None:
    """Scale the axes around all vertices, unless the caller has set limits; neither flat nor narrow."""
    if not len(places):
        return
    low, high = places.min(axis=0), places.max(axis=0)
    half = np.maximum((high - low) / 2, (high - low).max() * 0.2 or 1.0)
    middle = (low + high) / 2
    ax.update_datalim([middle - half, middle + half])
    ax.margins(0.08)
    ax.autoscale_view()


def _draw_edges(ax: Any, places: Array, tails: Array, heads: Array, *, behind: bool) -> None:
    """Draw straight lines, fainter behind paths; a few edges get arrows if they go one way, and bend around vertices."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import FancyArrowPatch

    n = len(places)
    low, high = np.minimum(tails, heads), np.maximum(tails, heads)
    keys, first, counts = np.unique(low.astype(np.int64) * n + high, return_index=True, return_counts=True)
    tails, heads, both = tails[first], heads[first], counts > 1
    if not 0 < len(keys) <= _DRAWN:
        return
    start, end = places[tails], places[heads]
    ink = np.hypot(*(end - start).T).sum() / max(np.ptp(places, axis=0).max(), 1e-300)  # in lines across the picture
    style: dict[str, Any] = {"color": _GREY, "alpha": float(np.clip((20 if behind else 50) / max(ink, 1), 0.05, 0.65)), "zorder": 1}
    if n > _NAMED or len(keys) > _ARROWS:
        lines: Any = np.stack([start, end], axis=1)
        ax.add_collection(LineCollection(lines, linewidths=0.6, rasterized=n > _MANY, **style), autolim=False)
        return
    bends = np.where(_obstructed(places, tails, heads), _BEND, 0)
    if bends.any():  # the middle of a bent edge may be outside the limits
        ax.update_datalim((start + end) / 2 + (end - start)[:, ::-1] * (1, -1) * bends[:, None] / 2)
        ax.autoscale_view()
    for p, q, mutual, bend in zip(start, end, both.tolist(), bends.tolist(), strict=True):
        ax.add_patch(
            FancyArrowPatch(
                p, q, arrowstyle="-" if mutual else "-|>", mutation_scale=9, shrinkA=3.5, shrinkB=3.5, linewidth=1,
                connectionstyle=f"arc3,rad={bend}", **style,
            )
        )  # fmt: skip


def _obstructed(places: Array, tails: Array, heads: Array) -> Array:
    """Return a mask of the edges that pass over another vertex."""
    start, along = places[tails], places[heads] - places[tails]
    length = np.maximum((along**2).sum(axis=1), 1e-300)
    offset = places[None] - start[:, None]
    share = np.clip((offset * along[:, None]).sum(axis=2) / length[:, None], 0, 1)
    apart = ((offset - share[..., None] * along[:, None]) ** 2).sum(axis=2)
    edge = np.arange(len(tails))
    apart[edge, tails] = apart[edge, heads] = np.inf
    reach = 0.02 * np.ptp(places, axis=0).max()
    return np.asarray(apart.min(axis=1) < reach**2)


def _write_names(ax: Any, found: Store, places: Array, vertices: Iterable[int], colour: str, **style: Any) -> None:
    vertices = list(vertices)
    for v, node in zip(vertices, found.names.of(vertices), strict=True):
        ax.annotate(
            _text(node), places[v], xytext=(4, 4), textcoords="offset points", fontsize="small", color=colour, zorder=5,
            annotation_clip=True, parse_math=False, **style,
        )  # fmt: skip


def _text(node: Any) -> str:
    return short(printable(node), 24)


def _draw_routes(ax: Any, found: Store, places: Array, routes: dict[tuple[int, int], list[int]]) -> None:
    lines, texts, named = [], [], set[int]()
    for i, ((row, column), path) in enumerate(routes.items()):
        colour = _ROUTES[i % len(_ROUTES)]
        ends = [int(end[0]) for end in found.ends(np.array([row]), np.array([column]))]
        stops = path or ends
        named_here = stops if len(stops) <= _STOPS else ends
        lines += ax.plot(
            *places[stops].T, linestyle="-" if path else "", color=colour, linewidth=2.2, marker="o", markersize=5.5, zorder=4, alpha=0.9,
            markevery=None if named_here is stops else [0, -1], solid_joinstyle="round",
        )  # fmt: skip
        _write_names(ax, found, places, [v for v in named_here if v not in named], colour, fontweight="bold")
        named |= {*named_here}
        element = found.element(row, column)
        length = ", ".join(map(number, element)) if path else "no path"
        texts.append(f"{' → '.join(map(_text, found.names.of(ends)))}: {length}")
    legend = ax.legend(lines, [" "] * len(lines), loc="lower left", bbox_to_anchor=(0, 1), frameon=False, borderaxespad=0)
    for entry, text in zip(legend.get_texts(), texts, strict=True):  # names may begin with _ or contain $
        entry.set(text=text, parse_math=False, color=_GREY)


def heatmap(found: Store, ax: Any) -> Any:
    """See `Paths.heatmap`."""
    elements, there = sampled(found, *_SIDES)
    values = as_floats(elements[0], found.semiring)
    ax = _axes(ax, "heatmap", (5.6, 4.6))
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Patch

    rows, columns = found.shape
    square = rows == columns or not values.size
    colours = LinearSegmentedColormap.from_list("semiring", np.array(COLOURS) / 255).with_extremes(bad="none")
    finite = values[there & np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    image = ax.imshow(
        np.ma.masked_array(np.clip(values, low, high), ~there), cmap=colours, vmin=low, vmax=high, interpolation="nearest",
        extent=(-0.5, max(columns, 1) - 0.5, max(rows, 1) - 0.5, -0.5), aspect="equal" if square else "auto",
    )  # fmt: skip
    hatch: dict[str, Any] = {"facecolor": "none", "edgecolor": (0.5, 0.5, 0.5, 0.7), "hatch": "////", "linewidth": 0}
    if not there.all():
        ax.patch.set(alpha=None, **hatch)
        legend = ax.legend(handles=[Patch(label="no path", **hatch)], loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
        legend.get_texts()[0].set_color(_GREY)
    _name_axes(ax, found)
    if low < high:
        bar = ax.figure.colorbar(image, ax=ax)
        bar.set_label("distance" if is_min_plus(found.semiring) else found.semiring.name, color=_GREY, parse_math=False)
        bar.ax.tick_params(colors=_GREY)
        bar.outline.set_visible(False)
    return ax


def _name_axes(ax: Any, found: Store) -> None:
    """Write names of vertices along both sides, few enough to be legible."""
    ends = zip((ax.yaxis, ax.xaxis), found.shape, (found.sources, found.targets), ("source", "target"), strict=True)
    for axis, size, vertices, what in ends:
        every = -(-size // _TICKS) if size else 1
        at = np.arange(0, size, every)
        texts = [short(printable(node), 12) for node in found.names.of(vertices.numbers[at].tolist())]
        long = axis is ax.xaxis and sum(map(len, texts)) > 40
        axis.set_ticks(at, texts, parse_math=False, rotation=90 if long else 0)
        axis.set_label_text(what, color=_GREY)
    ax.tick_params(colors=_GREY)
    for spine in ax.spines.values():
        spine.set_visible(False)


def layout(n: int, tails: Array, heads: Array, lengths: Array) -> Array:
    """Place the vertices of a graph, with edges of nonnegative lengths in either direction; the result has shape (n, 2)."""
    graph = _undirected(n, tails, heads, lengths)
    label = weak_of_edges(n, graph.tails, graph.heads)
    order = np.argsort(label, kind="stable")
    components = np.split(order, np.flatnonzero(np.diff(label[order])) + 1) if n else []
    components.sort(key=len, reverse=True)
    parts = [_placed(graph.induced(some) if len(some) > 1 else None) for some in components]
    places = np.zeros((n, 2))
    for some, part in zip(components, _side_by_side(parts), strict=True):
        places[some] = part
    return places


def _undirected(n: int, tails: Array, heads: Array, lengths: Array) -> CSR:
    """Return the graph with each edge in both directions; the shortest of parallel edges counts."""
    apart = tails != heads
    tails, heads, lengths = tails[apart], heads[apart], lengths[apart]
    both = np.append(tails, heads), np.append(heads, tails), (np.append(lengths, lengths),)
    shortest = partial(combine_runs, combine=lambda one, other: (np.minimum(one[0], other[0]),))
    return CSR.of(*in_order(n, *both, shortest), n, (math.inf,))


def _placed(graph: CSR | None) -> Array:
    if graph is None:
        return np.zeros((1, 2))
    everywhere = graph.n <= _ALL
    distances = _rows(graph, np.arange(graph.n)) if everywhere else _from_pivots(graph)
    places = _scaled(distances)
    return _upright(_majorized(places, distances) if everywhere else places)


def _rows(graph: CSR, sources: Array) -> Array:
    searches = searches_for(MIN_PLUS, graph.dtypes, "cpu")
    (distances,) = rows_of_edges(MIN_PLUS, graph, sources, searches=searches)
    return np.asarray(distances)


def _from_pivots(graph: CSR) -> Array:
    """Return the distances from pivots far apart: each pivot is the vertex farthest from the earlier ones."""
    rows = [_rows(graph, np.array([0]))[0]]
    nearest = np.full(graph.n, math.inf)
    for _ in range(_PIVOTS):
        pivot = int((nearest if len(rows) > 1 else rows[0]).argmax())
        rows.append(_rows(graph, np.array([pivot]))[0])
        nearest = np.minimum(nearest, rows[-1])
    return np.array(rows[1:])


def _scaled(distances: Array) -> Array:
    """Apply classical scaling to the distances from k pivots to n vertices."""
    squares = distances**2
    centered = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean())
    sizes, vectors = np.linalg.eigh(centered @ centered.T)
    k, n = distances.shape
    roots = np.sqrt(np.maximum(sizes[:-3:-1], 0))  # centered = vectors · root · rightᵀ, and √root · right are the places
    wide = roots > 1e-9 * max(roots[0], 1e-300)
    places = np.zeros((n, 2))
    places[:, : len(roots)] = np.where(wide, centered.T @ vectors[:, :-3:-1] / np.sqrt(np.where(wide, roots, 1)) * (n / k) ** 0.25, 0)
    return places


def _majorized(places: Array, distances: Array) -> Array:
    """Move vertices closer to the wanted distances, in relative terms; each round minimizes a bound on the stress."""
    n = len(places)
    most = float(distances.max())
    if not most:  # all distances are 0
        angles = 2 * np.pi * np.arange(n) / n
        return np.column_stack([np.cos(angles), np.sin(angles)])
    wanted = np.maximum(distances, most / (3 * math.sqrt(n)))  # so that vertices do not cover each other
    np.fill_diagonal(wanted, 1)
    weights = wanted**-2.0
    np.fill_diagonal(weights, 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.inv(laplacian + weights.mean())  # equal to the pseudoinverse of the Laplacian on centered places
    places = places + np.random.default_rng(0).normal(scale=most * 1e-3, size=places.shape)  # separates coincident vertices
    for _ in range(_ROUNDS):
        x, y = places.T
        pulls = -weights * wanted / np.maximum(np.hypot(x[:, None] - x, y[:, None] - y), 1e-9 * most)
        np.fill_diagonal(pulls, 0)
        np.fill_diagonal(pulls, -pulls.sum(axis=1))
        places = inverse @ (pulls @ places)
    return places


def _upright(places: Array) -> Array:
    """Rotate the places so that the picture is wider than high; signs are fixed, for reproducible pictures."""
    places = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(places.T @ places)
    places = places @ axes.T
    farthest = np.abs(places).argmax(axis=0)
    return places * np.where(places[farthest, [0, 1]] < 0, -1, 1)


def _side_by_side(parts: list[Array]) -> list[Array]:
    """Arrange components, the largest first, in rows as wide as the picture allows."""
    if len(parts) < 2:
        return parts
    sizes = np.array([np.ptp(part, axis=0) for part in parts])
    counts = np.array([len(part) for part in parts])
    spread = float(np.sqrt((sizes.max(axis=1) ** 2 / counts).max())) or 1.0  # about as far apart as neighbours
    sizes = sizes + 0.7 * spread
    width = max(float(sizes[0, 0]), 1.4 * math.sqrt(float(sizes.prod(axis=1).sum())))
    found, x, y, height = [], 0.0, 0.0, 0.0
    for part, (w, h) in zip(parts, sizes.tolist(), strict=True):
        if x and x + w > width:
            x, y, height = 0.0, y - height, 0.0
        low, high = part.min(axis=0), part.max(axis=0)
        found.append(part - (low[0], high[1]) + (x + (w - (high[0] - low[0])) / 2, y - (h - (high[1] - low[1])) / 2))
        x, height = x + w, max(height, h)
    return found
