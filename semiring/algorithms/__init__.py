"""Closures, best paths, powers and long products over a semiring, as compositions of products. Knows neither CUDA nor LLVM.

A student reads the papers' algorithms first. Each is one short text of the primitives of an engine, which work on blocks of a matrix
(`semiring.kernels.engine.Primitives`), with the equation above each call and four vertices worked by hand:

================  ==========================================================================================================
file              papers
================  ==========================================================================================================
`iterative`       Warshall (1962), Floyd (1962); Harish and Narayanan (2007)
`blocked`         Venkataraman, Sahni and Mukhopadhyaya (2003), Katz and Kider (2008); with the construction matrix Matsumoto,
                  Nakasato and Sedukhin (2012), Algorithms 3–6
`recursive`       Buluç, Gilbert and Budak (2010), Fig. 3
`extraction`      Matsumoto, Nakasato and Sedukhin (2012), Algorithm 2: paths out of the construction matrix
`predecessors`    predecessor and next-hop matrices out of it, which Zuccato and Lena (2022) list as missing
`potentials`      Johnson (1977)
`spanning_tree`   Prim (1957), Kruskal (1956), Hu (1961); Gower and Ross (1969): bottlenecks of symmetric matrices
`elimination`     Backhouse and Carré (1975); Sao, Kannan, Gera and Vuduc (2020): sparse graphs
`scan`            Baum et al. (1970), Viterbi (1967): hidden Markov models
`cycle_mean`      Cochet-Terrasson et al. (1998), Dasdan (2004): Howard's policy iteration
`betweenness`     Brandes (2001)
`simple_paths`    Yen (1971), Lawler (1972): the k shortest simple paths
`bellman_ford`    Bellman (1958), Ford (1956), Cherkassky and Goldberg (1999): cycles that keep a closure from converging
================  ==========================================================================================================

What calls what:

    closure                   A* or A⁺ of one matrix or a batch, in place: what whoever closes a matrix calls
    ├─ stacks                 many small matrices at once, unless one needs a closer look
    ├─ task                   what is done with each matrix, or with a stack
    │  └─ schedules           the laws that a closure needs, and which algorithm runs
    │     └─ iterative, blocked, recursive
    ├─ spanning_tree          symmetric matrices over min and max, in n² steps
    ├─ components             weakly and strongly connected components, each closed alone
    │  └─ pivoting            an inverse with pivoting, where elimination without loses digits
    ├─ divergence             a divergent pivot: the cycle behind it, or rounding
    │  ├─ sums                sums of non-negative numbers that diverge: a cycle, or a strongly connected component
    │  └─ bellman_ford        a cycle whose weight is better than none, or potentials
    │     └─ relaxation       its steps, on a matrix or on edges
    └─ potentials             the closure once more, if it was rounding
    rows_of_edges             some rows of the closure of a sparse graph: best-first search, or label-correcting rounds
    └─ csr                    a sparse matrix by compressed rows
    best_path                 one path of a sparse graph, from both of its ends
    hops                      what all distances come to where all edges are equally long
    eccentricities            diameter and radius of a sparse graph, by bounds
    reachability              who reaches whom in a sparse graph, by its condensation
    factorization             a sparse graph that is eliminated, and again for other weights: any rows of the closure
    ├─ elimination            fronts of supernodes, and two sweeps through their panels
    ├─ symbolic, ordering     what will be filled, and an order of elimination in which that is little
    ├─ distribution           what all distances come to, tallied while sweeps find them
    └─ tight_edges            predecessor trees of its rows
    cycle_mean                the least mean of a cycle of a sparse graph, and an eigenvector
    betweenness               how much of all shortest paths leads through each vertex and edge
    simple_paths              the shortest path between two vertices, and the next best ones
    rows_of_matrix            some rows of the closure of a dense matrix, by products of a few rows
    predecessors              trees of best paths out of a construction matrix
    └─ extraction             single paths out of it
    block_rows                the order of the steps of `blocked` by block rows, on devices that need not hold the matrix
    power                     A^k by repeated squaring
    chain                     a product of several matrices, in the order of the fewest steps
    scan                      vectors through a long product: forward, backward and Viterbi's algorithm
    recorder                  in the place of an engine: what each call of a primitive reads, writes and changes
    phases                    which phase of which algorithm a call is, and its equation
"""
