"""What every room uses: errors, locks that forks respect, cards in HTML, and the version."""

__version__ = "0.1.0"
