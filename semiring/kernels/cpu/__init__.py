"""The CPU engine: products, closures and searches as machine code, generated for a semiring on the processor at hand.

From a semiring to machine code: `representation` says how elements are held while they are multiplied, and `tile` the register tile and
the cache blocks, for the processor that `semiring.kernels.hardware` tells of. `lowering`, with `instructions`, makes vector instructions
of the recorded ⊕ and ⊗, which `emitter` writes as LLVM IR; `arguments` says what a kernel is called with; `exponents` has numbers as
powers of two; `compiler` compiles and keeps it.

The kernels: `product` packs panels and has the macro-kernel, the loops of Goto and BLIS around the micro-kernel in `micro`; `exponential`
makes products of exponentials of those over log Σ exp; `witness` finds which k won; `pivot` closes a pivot block; `stacks` calls these for
all matrices of a stack, and `lanes` has small ones one to a lane; `vector` multiplies a matrix and a vector; `bounds` has the check of
operands that is part of a product; `scan` takes vectors through long products; `search` finds rows of the closure of a sparse graph,
`pair_search` one path, `tight_edges` trees of rows that were found otherwise, and `hops` hop counts from many vertices at once;
`strong_components` and `patterns` are of sparse patterns;
`spanning_tree` has minimum spanning forests, and the rows that they tell;
`sparse` multiplies compressed rows by a dense matrix, and `gustavson` by compressed rows; `patterns` analyses a sparse pattern,
`fronts` eliminates it, and `sweeps` goes through what is left, of which `tally` counts and adds up distances; `statistics` reads what
numbers there are; `boolean` has the kernels on bits, and their engine. Loops over the vertices of a graph are written with `body`:
`policy_iteration`, `betweenness`, and the `deviations` of paths.

Calling them: `kernels` has those of a semiring, `engine` takes operands as they lie, or copies; `launch` cuts a product into tasks and
fills in their arguments, `stacks` a stack, `searches` searches, with `hops`, `eliminations` sparse eliminations, `sparse_products`,
with `sparse_words`, products of sparse matrices, and `scans` sequences, with `scan_words`; `semiring.arrays.threads` runs tasks, and keeps
scratch memory.
"""
