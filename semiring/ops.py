"""Functions for the callables of a semiring: see `semiring.algebra.ops`."""

from semiring.algebra.ops import *  # noqa: F403 (a re-export under the public name)
