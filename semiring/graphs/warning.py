"""The one warning about graphs."""

__all__ = ["NonEdgeWarning"]


class NonEdgeWarning(UserWarning):
    """A dense matrix has no missing edge, and zeros that look like missing edges."""
