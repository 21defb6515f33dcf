"""Results of closures and eliminations, with paths, statistics, pictures and files.

    paths.py          `Paths`: elements and best paths, of one graph or of a batch; `PathsBetween` chosen sources and targets
    store.py          `Store`: a rectangle of elements and the best paths of its pairs, from a construction matrix or from trees
    within.py         the store of the best paths within a limit
    neighbours.py     `Neighbours`: the k best entries of each row, and their columns
    nearest.py        `Nearest`: the nearest of several sources for each vertex
    distributed.py    `DistributedMatrix`: elements whose rows the ranks of an MPI communicator have; the store of distributed trees
    statistics.py     `Statistics`: a summary of all distances, gathered from rows or tallied by a sweep
    factor.py         `Factor`: a sparse graph after elimination, its rows, columns, entries, solutions and new weights
    factor_gradients.py   solutions of a factor for PyTorch's tensors that require a gradient
    along.py          another attribute of the edges along the best paths of a store
    farthest.py       the farthest pairs and the center of a store
    pictures.py       a graph with best paths, its layout, and elements as a heat map, drawn by Matplotlib
    views.py          a store for SciPy, NetworkX, pandas and Jupyter
    saving.py         a store or a factor to a file and back, by `semiring.files.formats`
    recording.py      `Recording`: a closure step by step, the result of `watch`; its frames, tables and pictures

`semiring.execution` makes the stores. `semiring.algorithms` expands paths from a construction matrix, and grows trees.
"""
