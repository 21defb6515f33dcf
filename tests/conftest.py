"""Settings of all tests."""

from hypothesis import settings

# The first example of a kind may compile a kernel.
settings.register_profile("semiring", deadline=None)
settings.load_profile("semiring")
