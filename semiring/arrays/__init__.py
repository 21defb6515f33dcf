"""Arrays and where they lie: of which library, on which device, in how much memory; and their entries as elements.

    exchange.py      `borrowed`: the memory of another library's array as NumPy's or CuPy's, and results as arrays of that library
    nested.py        nested lists of numbers or arrays as one array
    cuda_stream.py   work on a GPU in the caller's stream: operands by their addresses, results beside them
    devices.py       which GPUs there are, where an array lies, and one text for NumPy and CuPy
    conversion.py    entries in another dtype, and whether they lie inside the carrier
    pieces.py        how much of an array is worked on at once
    memory.py        what is free on a device; what cannot fit is refused before anything is allocated
    threads.py       tasks over threads, signals that stop them, and the scratch memory of each
    overlap.py       memory layouts, and aliasing: whether two matrices share elements

Operands come by `cuda_stream.strided`, or else by `exchange.borrowed`; `conversion` reads their entries piece by piece, and engines ask
`overlap` whether they may write where operands lie. `devices` stands below all of them.
"""
