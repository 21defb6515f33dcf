"""Closures, searches, eliminations, paths and long products over a semiring, on the CPU and on GPUs.

Read the algorithms of the papers first. Each is a short program over the primitives of an engine (`semiring.kernels.engine.Primitives`),
with the equation above each call and an example of four vertices:

================  ==========================================================================================================
file              papers
================  ==========================================================================================================
`iterative`       Warshall (1962), Floyd (1962); Harish and Narayanan (2007)
`blocked`         Venkataraman, Sahni and Mukhopadhyaya (2003), Katz and Kider (2008); with the construction matrix Matsumoto,
                  Nakasato and Sedukhin (2012), Algorithms 3–6
`recursive`       Buluç, Gilbert and Budak (2010), Fig. 3
`extraction`      Matsumoto, Nakasato and Sedukhin (2012), Algorithm 2: paths out of the construction matrix
`predecessors`    predecessor and next-hop matrices; missing in Zuccato and Lena (2022)
`potentials`      Johnson (1977)
`spanning_tree`   Prim (1957), Kruskal (1956), Hu (1961); Gower and Ross (1969): bottlenecks of symmetric matrices
`elimination`     Backhouse and Carré (1975); Sao, Kannan, Gera and Vuduc (2020): sparse graphs
`scan`            Baum et al. (1970), Viterbi (1967): hidden Markov models
`cycle_mean`      Cochet-Terrasson et al. (1998), Dasdan (2004): Howard's policy iteration
`betweenness`     Brandes (2001)
`simple_paths`    Yen (1971), Lawler (1972): the k shortest simple paths
`bellman_ford`    Bellman (1958), Ford (1956), Cherkassky and Goldberg (1999): divergent cycles
================  ==========================================================================================================

What calls what:

    closure                   A* or A⁺ of one matrix or a batch, in place
    ├─ task                   loads, closes, checks and stores a matrix or a stack
    │  └─ schedules           checks the laws of a closure, and chooses the algorithm
    │     └─ iterative, blocked, recursive
    ├─ spanning_tree          symmetric matrices over min and max, in n² steps
    ├─ components             weakly and strongly connected components, each closed alone
    │  └─ pivoting            an inverse with pivoting, for digits that plain elimination loses
    ├─ divergence             a divergent pivot: the cycle behind it, or rounding
    │  ├─ sums                divergent sums of non-negative numbers: a cycle, or a strongly connected component
    │  └─ bellman_ford        relaxation of edges; a cycle of weight c with 1 ⊕ c ≠ 1, or potentials
    └─ potentials             the closure again, by potentials against rounding
    rows_of_edges             some rows of the closure of a sparse graph, or one path, by searches
    └─ csr                    a sparse matrix by compressed rows
    distances                 sums over all distances by hop counts; diameter and radius by bounds
    reachability              reachability in a sparse graph, by its condensation
    factorization             an eliminated sparse graph: any rows of the closure, and new weights
    ├─ elimination            fronts of supernodes, and two sweeps through their panels
    ├─ symbolic               an order of elimination, and its fill
    ├─ distribution           the distribution of all distances, tallied during sweeps
    └─ tight_edges            predecessor trees of rows
    cycle_mean                the least mean of a cycle of a sparse graph, and an eigenvector
    betweenness               the share of shortest paths through each vertex and edge
    simple_paths              the k shortest simple paths between two vertices
    rows_of_matrix            some rows of the closure of a dense matrix, by products of a few rows
    predecessors              trees of best paths, from a construction matrix
    └─ extraction             single paths from a construction matrix
    block_rows                the order of the steps of `blocked` by block rows, out of core or distributed
    chain                     products of several matrices, and powers
    scan                      vectors through a long product: forward, backward and Viterbi's algorithm
    recorder                  a recording engine: what each primitive reads, writes and changes, with phase and equation
"""
