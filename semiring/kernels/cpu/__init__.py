"""Products, closures and loops on the CPU: machine code generated for a semiring on this processor, through LLVM.

Generating code:

representation    inner elements (order keys, clamped ∞, exponentials); register tile and cache blocks of the product
arguments         argument words of kernels, and forms of scans
emitter           LLVM IR as text
loops             loops in Python, compiled: the decorator, and calls
loop_source       their text, types and constructs
loop_compiler     their syntax trees as LLVM IR
element_operations   the operations of a semiring, inlined into them
instructions      vector instructions; exp and log
lowering          expressions of a semiring as vector instructions
compiler          LLVM IR to machine code, through the cache
kernels           kernels of one semiring, and their cached launches

Dense matrices:

engine            operations of `Engine` on NumPy arrays
launch            tasks and arguments of products, pivot blocks and stacks
product           packing, the loops around the micro-kernel (Goto, BLIS), and the lookup of the winning k
micro             register tile of C and its merge with C
exponential       products of exponentials where ⊕ is log Σ exp
pivot             closure of a pivot block
vector            matrix × vector and vector × matrix
lanes             loops over stacks of matrices; small matrices, one to a lane
bounds            check of operands within a product
statistics        value statistics of arrays
boolean           Boolean matrices as bits, and their engine
gradients         sums of gradients by the witness

Sparse matrices and graphs:

sparse            sparse × dense products by compressed rows
gustavson         sparse × sparse products by compressed rows
sparse_products   sparse products over threads
fronts            multifrontal elimination
sweeps            rows and columns of the closure from eliminated panels, and statistics of distances on the way
tight_edges       trees from known distances, a row to a lane
eliminations      sparse elimination, its sweeps and trees, over threads
hops              sets of sources in loops, as bits

Sequences:

scan              a vector through a long product of matrices
scans             scans over threads
"""
