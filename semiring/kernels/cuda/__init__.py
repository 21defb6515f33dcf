"""The CUDA engine: products, closures and paths on NVIDIA GPUs.

From a semiring to machine code: `representation` chooses how elements are held during products, and the instructions of a step. `tile`
cuts a product into tiles, and `source` writes the operations as a C++ struct. `kernels` puts the struct before a template, and `compiler`
compiles by NVRTC, caches, loads and launches. `semiring.kernels.hardware` has the limits of a GPU.

The templates, which take the struct as ``S``:

- ``product.cuh``: the main loop and the epilogue of a product, on ``tile.cuh`` (stages in shared memory, fragments and accumulators in
  registers). ``shapes.cuh``: small matrices, few steps, and vectors.
- ``pivot.cuh``: the closure of a pivot block; ``paths.cuh``: predecessor trees and paths.
- ``scan.cuh``: vectors through long products of matrices; ``sparse.cuh``: compressed rows by a vector or a dense matrix. Both add terms
  with ``sums.cuh``.
- ``fronts.cuh`` and ``sweeps.cuh``: the elimination of a sparse graph, and sweeps through its panels; ``levels.cuh``: hop counts.
- ``bits.cuh``: matrices of bits; ``elements.cuh`` and ``statistics.cuh``: elementwise kernels and value statistics.
- ``memory.cuh`` and ``arithmetic.cuh`` are below all these. `arguments` declares the structures.

Launches: `engine` is `Engine`, with copies of operands and parts of products. `kernels` plans special shapes; `launches` has all other
plans, CUDA graphs, and cuBLAS for large products of floats (also for `exponential`). `scan`, `sparse`, `fronts` (with sweeps) and
`paths` launch the templates of these names. `boolean` is the engine on bits, and counts hops. `blocks` describes and copies blocks, also
between host and GPU; `elements` has elementwise kernels, and `statistics` value statistics.
"""
