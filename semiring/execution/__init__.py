"""Plans are run here, one executor a strategy; each reads, checks, computes and hands back, from top to bottom.

    whole.py        the closure of matrices that fit where they are closed
    block_rows.py   the closure of a matrix by block rows that come and go, or that GPUs share
    product.py      a product
    rows.py         rows of a closure by searches of a sparse graph, by products, or out of the closure of what they reach

`semiring.execution.whole` tells what is asked, has it planned, and calls one of them; `semiring.product` does so for a product.
"""
