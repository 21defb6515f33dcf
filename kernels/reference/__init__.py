"""The reference engine: NumPy, for every dtype, objects included.

`operations` are ⊕, ⊗ and star on arrays; `engine` multiplies and closes with them.
"""
