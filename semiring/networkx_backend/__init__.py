"""The NetworkX backend `semiring`: functions of NetworkX that follow from all distances of a graph, or from who reaches whom.

    info.py         what NetworkX is told when it is imported: the functions' names and notes
    interface.py    the entry point: which calls can be answered, and the functions themselves
    costs.py        predicted seconds of NetworkX and of this library
    paths.py        shortest paths and reachability, as NetworkX returns them
    measures.py     centralities, eccentricities and indices, as NetworkX returns them
    betweenness.py  betweenness of nodes and edges, as NetworkX scales it
    rows.py         rows of all pairs, one after the other: the first by NetworkX, the others by blocks of distances
    distances.py    the edges of a NetworkX graph with the meaning that NetworkX gives to weights, and all its distances

`interface` hands a call of NetworkX to `paths`, `measures` or `betweenness`. Distances come from `rows` or `distances`, as planned by
`semiring.planning` and computed by `semiring.execution`.
"""
