"""Functions for the ⊕ and ⊗ of a semiring that Python's operators and ``min``, ``max`` and ``abs`` cannot express.

The functions take Python scalars (also Fractions and integers of any size), NumPy scalars and arrays (also of objects), SymPy
expressions, and the symbols with which a callable is recorded. Operators (``+ - * / // % & | ^ << >> ~ < <= == != >= >``) and the
built-in ``min``, ``max`` and ``abs`` need no such help. A real function without a value (the logarithm of −1) gives NaN, as in NumPy.

Examples
--------
>>> from semiring import ops
>>> ops.logaddexp(0.0, 0.0)  # log(e^0 + e^0)
0.6931471805599453
>>> ops.where(3 > 2, "yes", "no")
'yes'
"""

from semiring.algebra.ops import *  # noqa: F403 (a re-export under the public name)
