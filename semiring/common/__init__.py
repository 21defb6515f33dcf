"""The modules that all packages use; they import from no other package.

docstrings.py  parameters described once for several functions
errors.py      the exceptions of the library, and values in messages
forks.py       locks that are free in a forked child, and a `cached_property` without a lock
html.py        small tables for Jupyter
progress.py    steps of a computation, counted and reported
units.py       times, speeds and sizes in words
"""

__version__ = "0.1.0"
