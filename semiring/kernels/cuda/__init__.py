"""The CUDA engine: products, closures and paths on NVIDIA GPUs.

From a semiring to machine code: `representation` chooses how elements are held during products, and `steps` chooses the instructions of a
step. `tile` cuts a product into tiles, and `source` writes the operations as a C++ struct. `kernels` puts the struct before a template, and
`compiler` compiles by NVRTC, caches, loads and launches. `semiring.kernels.hardware` has the limits of a GPU.

The templates, which take the struct as ``S``:

- ``product.cuh``: the main loop of a product, on ``tile.cuh`` (stages in shared memory, fragments and accumulators in registers) and
  ``epilogue.cuh`` (from accumulators to C, and the witness lookup).
- ``shapes.cuh``: small matrices, few steps, and vectors; ``exponential.cuh``: before and after a product of exponentials.
- ``pivot.cuh``: the closure of a pivot block; ``paths.cuh``: predecessor trees and paths.
- ``scan.cuh``: vectors through long products of matrices; ``sparse.cuh``: compressed rows by a vector or a
  dense matrix, in the tiles of ``sparse_tiles.cuh``; both add terms with ``sums.cuh``.
- ``fronts.cuh`` and ``sweeps.cuh``: the elimination of a sparse graph, and sweeps through its panels; ``levels.cuh``: hop counts.
- ``bits.cuh`` and ``bits_product.cuh``: matrices of bits; ``elements.cuh`` and ``statistics.cuh``: elementwise kernels and value
  statistics.
- ``memory.cuh``, ``arithmetic.cuh`` and ``bounds.cuh`` (checks of operands) are below all these. `arguments` declares the structures.

Launches: `engine` is `Engine`, on `products` (copies and parts), `shapes` (split-K and kernels for special shapes) and `launches` (plans).
`blas` gives large products of floats to cuBLAS, also for `exponential`. `scan`, `sparse` (with `expansion` for two sparse matrices),
`fronts`, `sweeps`, `levels` and `paths` launch the templates of these names. `boolean` is the engine on bits. `blocks` describes and copies
blocks, `capture` records CUDA graphs, `elements` has elementwise kernels, `statistics` value statistics, and `transfer` copies between host
and GPU.
"""
