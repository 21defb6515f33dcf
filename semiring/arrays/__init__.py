"""Arrays of all libraries on all devices, their memory, and their entries as elements.

exchange.py      `borrowed`: the memory of another library's array as NumPy's or CuPy's, and results as arrays of that library;
                 `as_array_like`: the same for everything that may be a matrix, such as nested lists and data frames
devices.py       available GPUs, the device of an array, and functions for NumPy and CuPy alike; work in the caller's CUDA stream
conversion.py    entries in another dtype, and the check against the carrier
pieces.py        slices of large arrays for work in pieces
memory.py        free memory of a device; refusal of allocations that cannot fit
threads.py       tasks over threads, signals that stop tasks, and scratch memory
followed.py      arrays that PyTorch or JAX follows: for a gradient, a transformation, or a compiler
autograd.py      functions for PyTorch's automatic differentiation, of a forward and a backward pass
xla.py           `register`: a Python function that XLA, the compiler of JAX, calls with arrays
overlap.py       memory layouts and aliasing of matrices

`devices.strided` or else `exchange.borrowed` reads operands, `conversion` their entries in pieces. Engines ask `overlap` for aliasing
before they write. All modules may import `devices`.
"""
