"""The executors: one for each strategy of a plan.

    question.py     `Question`: what a caller asks; read, stated as a problem for the planner, and answered in the caller's kind and order
    strategy.py     `solve`: read, plan, run; progress and errors, once for all executors
    whole.py        the closure of matrices that fit
    block_rows.py   the closure of a matrix by block rows, out of core or on several GPUs
    rows.py         some rows of a closure, by products or by the closure of what the rows reach
    row_solvers.py  rows by the edges of a sparse graph: by searches, elimination, components, or a spanning forest
    within.py       elements within a limit, in a sparse array
    neighbours.py   the k best elements of each row
    turns.py        closures with turn costs, of a graph whose nodes are edges too
    sums.py         sums and extremes of all distances, without a matrix
    each.py         `solve_each`: the closures of a list of graphs; graphs of one shape are one stack
    ranks.py        `solve_by_ranks`: the closure of one matrix by the ranks of an MPI communicator
    reporting.py    progress: a callback, a bar, or lines of text
    factor.py       `factor_graph`: the factor of a graph
    product.py      `multiply`: the product of two matrices
    relaunch.py     `multiply_again`: a product on a GPU whose kernels were launched before for operands of the same layout
    gradients.py    `multiply_with_gradient`: a product of PyTorch's tensors that require a gradient
    closure_gradients.py, scan_gradients.py, sparse_gradients.py   closures, scans and sparse products of such tensors
    compiled.py     `in_graph`: a call within a function that PyTorch compiles
    numbering.py    `Numbering`: numbers that stand for calls in functions that PyTorch and JAX compile
    traced.py       operations within functions that JAX traces; traced_product.py, traced_closure.py, traced_scan.py: what they compute
    operands.py     the operands of a product: form, arrays and output
    sparse_product.py, sparse_operands.py   `multiply_sparse`, `sparse_power`: products and powers of sparse arrays
    scan.py         `scan_sequences`: vectors through a long product of matrices
    pairwise.py     `pairwise_blocks`: distances between rows, by blocks of a product

The face calls `solve`, `multiply`, `scan_sequences` and `pairwise_blocks`.
"""
