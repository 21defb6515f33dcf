"""Find out which packages of this Python environment need which, directly or through others.

python examples/dependencies.py numpy
"""

import re
import sys
from importlib import metadata

import semiring as sr


def requirements() -> list[tuple[str, str]]:
    """Return an edge from each installed package to each installed package in its list of requirements, extras aside."""
    packages = {normal(p.name): p for p in metadata.distributions()}
    found = set()
    for name, package in packages.items():
        for line in package.requires or ():
            needed = normal(re.split(r"[^\w.-]", line, maxsplit=1)[0])
            if needed in packages and "extra ==" not in line:
                found.add((name, needed))
    return sorted(found)


def normal(name: str) -> str:
    """Return a package's name as the index of packages writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main(package: str) -> None:
    """Print the packages that need a package, each with a chain of requirements."""
    needs = sr.transitive_closure(sr.edges(requirements()), paths=True)
    dependents = [name for name in sorted(needs.nodes) if needs[name, package]]
    print(f"{len(dependents)} of {len(needs.nodes)} packages need {package}:")
    for name in dependents:
        print("  " + " → ".join(needs.path(name, package)))


if __name__ == "__main__":
    main(*(sys.argv[1:] or ("numpy",)))
