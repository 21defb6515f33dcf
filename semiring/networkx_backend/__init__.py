"""The NetworkX backend `semiring`: functions of NetworkX that use all distances of a graph, or reachability.

info.py       names and notes of the functions, for NetworkX's import
interface.py  the entry point: the functions, and the test whether the backend can answer a call
costs.py      predicted seconds of NetworkX and of this library
paths.py      shortest paths, rows of all pairs and reachability, in the form that NetworkX returns
measures.py   centralities, eccentricities, indices and betweenness, in the form that NetworkX returns
distances.py  edges with NetworkX's meaning of weights, and all distances
"""
