"""What a closure with paths returns, and the ways out of it.

    paths.py          `Paths`: elements and best paths, of one graph or of a batch
    lookups.py        what it is asked by the names of vertices: elements, paths, farthest pairs, trees
    paths_between.py  `PathsBetween`: the same between chosen sources and targets
    exports.py        what both give to other programs: tables, graphs, pictures, files
    store.py          `Store`, what both ask: a rectangle of elements, and what holds the best paths of its pairs
    construction.py     the store of a construction matrix, out of which paths are expanded
    trees.py            the store of predecessor trees, one for each source (or of next hops, one for each target)
    distributed.py    `DistributedMatrix`: elements whose rows the ranks of an MPI communicator have; their store of predecessor trees
    running.py        `RunningDistances`: what `statistics` says of distances, as rows of them come by
    statistics.py     `Statistics`, and how distances come to it that are tallied as a sweep finds them
    factor.py         `Factor`: a sparse graph that was eliminated, of which rows, columns and entries are asked
    factor_exports.py   what it tells of itself and gives beside elements: order and fill, statistics, a file
    farthest.py       the farthest pairs and the center, out of a store
    pictures.py       a graph with its best paths, and elements as a heat map, drawn by Matplotlib
    layout.py         where the vertices of a graph are drawn
    views.py          a store as SciPy, NetworkX, pandas and Jupyter would have it
    saving.py         a store to a file and back, by `semiring.files.formats`
    factor_files.py   a factor to a file and back
    headers.py        what files say of semirings, dtypes and names, and what is refused of them
    recording.py      `Recording`: a closure step by step, as `watch` gives it
    frames.py               its frames: what each phase read and wrote, and the matrix after it
    recording_pictures.py   they in Jupyter, with a slider or as a page of HTML without scripts
    recording_plots.py      they by Matplotlib

`semiring.execution` makes the stores. How a path is found in a construction matrix, and a tree in many, is in `semiring.algorithms`.
"""
