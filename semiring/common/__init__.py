"""What all packages use.

errors.py     the exceptions of the library, and how their messages name values
forks.py      locks that no child of a fork finds held, and `cached_property` without one
html.py       small tables for Jupyter
progress.py   how far a computation is: steps that are counted, and what is told of them
units.py      times, speeds and sizes in words

Nothing here imports from the other packages.
"""

__version__ = "0.1.0"
