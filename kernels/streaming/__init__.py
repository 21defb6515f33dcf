"""Matrices larger than the memory of what computes: block rows on their way to an engine and back."""
