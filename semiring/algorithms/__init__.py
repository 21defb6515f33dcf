"""Closures, searches, eliminations, paths and long products over a semiring, on the CPU and on GPUs.

Begin with the three algorithms of the papers: short programs over the primitives of an engine (`semiring.kernels.engine.Primitives`),
with the equation above each call and an example of four vertices.

iterative         one vertex at a time: Warshall (1962), Floyd (1962); Harish and Narayanan (2007)
blocked           pivot blocks in four phases: Venkataraman, Sahni and Mukhopadhyaya (2003), Katz and Kider (2008); with the construction
                  matrix Matsumoto, Nakasato and Sedukhin (2012), Algorithms 3–6
recursive         halves in eight phases: Buluç, Gilbert and Budak (2010), Fig. 3

Closure of a dense matrix:

closure           A* or A⁺ of one matrix or a batch, in place; calls the files up to `potentials`
task              load, close, check and store a matrix or a stack
schedules         the laws of a closure, and the choice of one of the three algorithms
components        weakly and strongly connected components, each closed alone
pivoting          an inverse with pivoting, if plain elimination loses digits
spanning_tree     bottlenecks of symmetric matrices in n² steps: Prim (1957), Kruskal (1956), Hu (1961); Gower and Ross (1969)
divergence        the diagnosis of a divergent pivot: a cycle, or rounding
bellman_ford      relaxation of edges, and divergent cycles: Bellman (1958), Ford (1956), Cherkassky and Goldberg (1999)
sums              divergent sums of non-negative numbers: a cycle, or a strongly connected component
potentials        the closure again by potentials, against rounding: Johnson (1977)
rows_of_matrix    rows of a closure, by products of a few rows
block_rows        the steps of `blocked` by block rows, out of core or distributed
recorder          a recording engine: the reads, writes, changes, phase and equation of each call of a primitive

Sparse graphs:

csr               compressed rows
rows_of_edges     rows of a closure, or one path, by searches
distances         sums over all distances by hop counts; diameter and radius by bounds
reachability      reachable vertices, by condensation
betweenness       the share of shortest paths through each vertex and edge: Brandes (2001)
cycle_mean        the least mean of a cycle, and an eigenvector: Cochet-Terrasson et al. (1998), Dasdan (2004)
factorization     an eliminated graph: any rows of the closure, and new weights; calls the files below
elimination       fronts of supernodes, and two sweeps: Backhouse and Carré (1975); Sao, Kannan, Gera and Vuduc (2020)
symbolic          orders of elimination, supernodes and fill
distribution      statistics of all distances, tallied during sweeps

Paths:

extraction        paths out of a construction matrix: Matsumoto, Nakasato and Sedukhin (2012), Algorithm 2
predecessors      predecessor and next-hop matrices; missing in Zuccato and Lena (2022)
tight_edges       predecessor trees from rows of distances
simple_paths      the k shortest simple paths: Yen (1971), Lawler (1972)

Long products:

chain             products of several matrices, and powers
scan              forward, backward and Viterbi's algorithm: Baum et al. (1970), Viterbi (1967)
"""
