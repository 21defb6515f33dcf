"""The NetworkX backend `semiring`: functions of NetworkX that follow from all distances or from reachability.

    info.py         metadata that NetworkX imports: names and notes of functions
    interface.py    the entry point: which calls can be answered, and the functions themselves
    costs.py        predicted seconds of NetworkX and of this library
    paths.py        shortest paths and reachability, as NetworkX returns them
    measures.py     centralities, eccentricities and indices, as NetworkX returns them
    betweenness.py  betweenness of nodes and edges, as NetworkX scales it
    rows.py         rows of all pairs, one after the other: the first by NetworkX, the others by blocks of distances
    distances.py    the edges of a NetworkX graph, with weights as NetworkX reads them, and all distances

`interface` hands a call of NetworkX to `paths`, `measures` or `betweenness`. Distances come from `rows` or `distances`, as planned by
`semiring.planning` and computed by `semiring.execution`.
"""
