"""The one error that both libraries raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scipy.sparse.csgraph import NegativeCycleError as ScipyNegativeCycleError

from semiring.algebra.errors import NegativeCycleError as OwnNegativeCycleError

__all__ = ["NegativeCycleError", "as_both"]


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


@contextmanager
def as_both() -> Iterator[None]:
    """Turns the error of either library into one that is both."""
    try:
        yield
    except OwnNegativeCycleError as error:
        raise NegativeCycleError(str(error), error.cycle) from None
    except ScipyNegativeCycleError as error:
        raise NegativeCycleError(str(error)) from None
