"""Functions for the callables of a semiring, where operators and the built-in ``min``, ``max`` and ``abs`` do not do.

They work on Python scalars (Fractions too, and integers of any size), NumPy scalars and arrays (of objects too), SymPy expressions, and
the symbols with which a callable is recorded. Operators (``+ - * / // % & | ^ << >> ~ < <= == != >= >``) and the built-in ``min``,
``max`` and ``abs`` need no such help. Where a function of real numbers has no value (the logarithm of −1), it gives NaN, as NumPy does.

Examples
--------
>>> from semiring import ops
>>> ops.logaddexp(0.0, 0.0)  # log(e^0 + e^0)
0.6931471805599453
>>> ops.where(3 > 2, "yes", "no")
'yes'
"""

from semiring.algebra.ops import *  # noqa: F403 (a re-export under the public name)
