"""The one error that both libraries raise."""

from __future__ import annotations

from typing import Any

from scipy.sparse.csgraph import NegativeCycleError as ScipyNegativeCycleError

from semiring.algebra.errors import NegativeCycleError as OwnNegativeCycleError

__all__ = ["AsBoth", "NegativeCycleError"]


class NegativeCycleError(OwnNegativeCycleError, ScipyNegativeCycleError):  # type: ignore[misc]  # SciPy's class has no types
    """The graph has a cycle of negative weight: shortest paths do not exist.

    It is SciPy's ``NegativeCycleError`` and `semiring.NegativeCycleError`, so that either catches it.

    Attributes
    ----------
    cycle : list of int or None
        The vertices of one such cycle, in order; None where SciPy found it, which does not tell.

    Examples
    --------
    >>> from scipy.sparse import csgraph as scipys
    >>> import semiring as sr
    >>> from semiring.csgraph import NegativeCycleError
    >>> issubclass(NegativeCycleError, scipys.NegativeCycleError), issubclass(NegativeCycleError, sr.NegativeCycleError)
    (True, True)
    """

    def __init__(self, message: str = "", cycle: list[int] | None = None) -> None:
        OwnNegativeCycleError.__init__(self, message, cycle)


class AsBoth:
    """Turns the error of either library into one that is both."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OwnNegativeCycleError):
            raise NegativeCycleError(str(error), error.cycle) from None
        if isinstance(error, ScipyNegativeCycleError):
            raise NegativeCycleError(str(error)) from None
