"""The executors, one a strategy, which run plans; each reads, checks, computes and hands back, from top to bottom.

    closure.py      `solve`: from whatever the caller calls a graph to its closure, by one of the executors
    each.py         `solve_each`: the closures of a list of graphs, those of one size as one stack
    whole.py        the closure of matrices that fit where they are closed
    block_rows.py   the closure of a matrix by block rows that come and go, or that GPUs share
    rows.py         rows of a closure by searches of a sparse graph, by products, or out of the closure of what they reach
    searches.py     searches or the elimination of a sparse graph, for some rows or for all
    elimination.py  `factor_graph`: from whatever the caller calls a graph to its factor
    ranks.py        `solve_by_ranks`: the closure of one matrix by the ranks of an MPI communicator
    searches_by_ranks.py    searches of a sparse graph whose sources the ranks share out
    product.py      `multiply`: from whatever the caller calls matrices to their product
    sparse_product.py   `multiply_sparse`: the same of sparse arrays, with `sparse_operands.py`, what is read of them, and `sparse_power.py`
    relaunch.py     `multiply_again`: on a GPU, what was launched for operands that lay alike
    scan.py         `scan_sequences`: vectors through a long product of matrices
    operands.py     the operands of a product: its form, their components as arrays, and where the result is put
    reporting.py    who is told how far a call is: a function, a bar, or nobody

`semiring.solve`, `semiring.product` and `semiring.sequences` call `solve`, `multiply` and `scan_sequences`. These read, ask
`semiring.planning` for the plan, and call what runs it.
"""
