"""Closures, best paths, powers and long products over a semiring, as compositions of products.

Schedules know neither CUDA nor LLVM; only `closure` and `predecessors` call kernels for whole matrices on a GPU.

Closures
    closure             A* or A⁺ of a matrix or a batch, in place: the laws, checks, components, and repeats after rounding errors
    schedules           choice of the algorithm: `iterative`, `blocked` or `recursive`
    blocked             Warshall (1962), Floyd (1962), Harish and Narayanan (2007); by blocks Venkataraman, Sahni and Mukhopadhyaya (2003),
                        Katz and Kider (2008); with the construction matrix Matsumoto, Nakasato and Sedukhin (2012), Algorithms 3–6
    recursive           Buluç, Gilbert and Budak (2010), Fig. 3
    windows             small integers on tensor cores, in windows of distances: Yuval (1976)
    block_rows          the steps of `blocked` by block rows, on one or more devices that need not hold the matrix
    spanning_tree       symmetric matrices over min and max: Prim (1957), Kruskal (1956), Hu (1961); Gower and Ross (1969)
    components          weakly and strongly connected components, closed one by one
    recorder            a record of the calls, areas, changes and phases of a closure

Searches
    csr                 sparse matrices in compressed rows, their transposes, and a test for symmetry
    search              best-first search, label-correcting rounds, and search from both ends: Dijkstra (1959), Pohl (1971), Mohri (2002)
    heap                their priority queue
    within              rows within a limit, or only the k best elements, in time and memory for what is found
    nearest             the nearest of several sources for each vertex, or the k nearest: Erwig (2000)
    tight_edges         predecessor trees of known rows
    rows_of_edges       rows of the closure of a sparse graph, by these searches or by NumPy
    hops                hop counts from many vertices at once: Then et al. (2014)
    rows_of_matrix      rows of the closure of a dense matrix, by products of a few rows
    strong_components   strongly connected components of a sparse graph: Tarjan (1972), Pearce (2016)
    reachability        reachability in a sparse graph: Purdom (1970)

Paths
    predecessors        paths, predecessors and next hops out of a construction matrix: Matsumoto, Nakasato and Sedukhin (2012),
                        Algorithm 2; next-hop matrices, which Zuccato and Lena (2022) list as missing
    all_paths           all best simple paths of a pair, and their number
    simple_paths        the k shortest simple paths: Yen (1971), Lawler (1972)

Eliminations
    symbolic            order and fill of the elimination of a sparse graph; its elimination tree: Liu (1990), Davis (2006)
    elimination         fronts of supernodes, and sweeps through panels: Backhouse and Carré (1975), Sao, Kannan, Gera and Vuduc (2020)
    factorization       a sparse graph with its elimination, repeated for other weights, and its checks

Divergences
    divergence          the cycle behind a divergent pivot, or rounding
    sums                divergent sums of non-negative numbers; inverses with pivoting, where elimination without pivoting lost digits
    bellman_ford        divergent cycles: Bellman (1958), Ford (1956), Cherkassky and Goldberg (1999);
                        the closure after a rounding error: Johnson (1977)

Statistics
    distances           sums of distances by hop counts; diameter and radius by bounds: Takes and Kosters (2011, 2013)
    distribution        sums, maxima and histograms of all distances of an eliminated graph
    betweenness         the share of shortest paths through each vertex and edge: Brandes (2001)
    cycle_mean          the least mean of a cycle, and an eigenvector: Cochet-Terrasson et al. (1998), Dasdan (2004);
                        the least ratio of two sums: Dinkelbach (1967)
    elementary_cycles   all cycles without a repeated vertex: Johnson (1975)

Products
    chain               several matrices in the order of the fewest steps, and powers by repeated squaring
    scan                vectors through a long product: Baum et al. (1970), Viterbi (1967)
    metrics             operations of distances between rows, by name or by the caller's callables
    selection           the k best entries of each row, block after block
    adjoints            the gradients of both operands of a product, for PyTorch
    closure_adjoints    the gradient of the matrix of a closure
    scan_adjoints       the gradients of matrices, weights and initial vector of a scan
    sampling            sequences of states from the posterior of a scan: forward filtering, backward sampling
    tangents            the tangent of a product, for JAX
"""
