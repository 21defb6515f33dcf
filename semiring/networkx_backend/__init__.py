"""The NetworkX backend `semiring`: functions of NetworkX that follow from all distances of a graph, or from who reaches whom.

    info.py         what NetworkX is told when it is imported: the functions' names and notes
    interface.py    the entry point: which calls can be answered, which are predicted to be faster here, and the functions themselves
    paths.py        shortest paths and reachability, as NetworkX returns them
    measures.py     centralities, eccentricities and indices, as NetworkX returns them
    betweenness.py  betweenness of nodes and edges, as NetworkX scales it
    distances.py    the edges of a NetworkX graph with the meaning that NetworkX gives to weights, and all its distances

NetworkX asks `interface` for a call, which hands it to `paths` or `measures`; these ask `distances`, and that `semiring.planning` for the
plan and `semiring.execution` for what runs it.
"""
