"""Find the shortest routes of a road network in a CSV file, and draw a map.

python examples/roads.py Genf Davos     # writes roads.svg
"""

import csv
import sys
from pathlib import Path

import semiring as sr

FOLDER = Path(__file__).parent


def main(start: str, goal: str) -> None:
    """Print the route between two places and the farthest places of all, and draw the map."""
    roads = sr.read_edges(FOLDER / "roads.csv", directed=False)
    paths = sr.apsp(roads, paths=True)
    print(f"{start} to {goal}: {paths[start, goal]:.0f} km by {', '.join(paths.path(start, goal)[1:-1])}")
    (one, other, distance), *_ = paths.longest(1)
    print(f"The farthest from each other are {one} and {other}: {distance:.0f} km.")

    with (FOLDER / "places.csv").open(encoding="utf-8") as file:
        places = {row["place"]: (float(row["longitude"]), float(row["latitude"])) for row in csv.DictReader(file)}
    paths.plot(pos=places, highlight=(start, goal)).figure.savefig("roads.svg")


if __name__ == "__main__":
    main(*(sys.argv[1:] or ("Genf", "Davos")))
