"""The CUDA engine: products, closures and paths on NVIDIA GPUs.

From a semiring to machine code: `representation` says how elements are held while they are multiplied, `steps` which instructions take a
step, `tile` which tiles a product is cut into, and `source` writes the operations as a C++ struct. `kernels` puts that before one of the
templates; `compiler` compiles by NVRTC, keeps, loads and launches it; `semiring.kernels.hardware` has the limits of a GPU.

The templates, which take the struct as ``S``:

- ``product.cuh`` is the main loop of a product; it includes ``tile.cuh`` (a thread block's tile, its stages in shared memory, fragments and
  accumulators in registers) and ``epilogue.cuh`` (from accumulators to C, and the witness).
- ``shapes.cuh`` multiplies small matrices, of which a warp or a thread block has one, and a matrix and a vector; ``exponential.cuh`` has
  what is done before and after a product of exponentials.
- ``pivot.cuh`` closes a pivot block, ``paths.cuh`` grows predecessor trees and expands paths.
- ``scan.cuh`` takes vectors through long products of matrices, a thread block each, and ``sparse.cuh`` multiplies compressed rows, in the
  tiles of ``sparse_tiles.cuh``, by a vector (``sparse_vector.cuh``) or a dense matrix (``sparse_matrix.cuh``); ``sums.cuh`` has how both
  add terms up. ``fronts.cuh`` eliminates the fronts of a sparse graph, ``sweeps.cuh`` goes through their panels, and ``levels.cuh`` counts
  hops between all vertices of a sparse graph.
- ``bits.cuh`` and ``bits_product.cuh`` are for matrices of bits; ``elements.cuh`` and ``statistics.cuh`` read and write each element.
- ``memory.cuh``, ``arithmetic.cuh`` and ``bounds.cuh``, which tells of operands that need a closer look, are below all these. The fields of
  the structures that Python fills are in `arguments`.

Calling them: `engine` is `Engine`, on `products`, which decides on copies, `shapes`, which has split-K and the shapes with kernels of their
own, and `launches`, which keeps what was decided for operands that lie alike. Large products of floats are cuBLAS's (`blas`), also those of
exponentials, where ⊕ is log Σ exp (`exponential`); `scan` launches scans, and `sparse` products of compressed rows, in the form and the
tiles of `sparse_form`, for which `sums` writes what is beside the operations and `expansion` finds the terms of two sparse matrices;
`fronts`, `sweeps` and `levels` launch those templates; `blocks` says where operands lie, and copies them. `boolean` is the engine on bits.
`capture` records schedules as CUDA graphs, `events` tell how far the GPU has come, `elements` has elementwise kernels, `statistics` value
statistics, `paths` paths, and `transfer` copies between host and GPU.
"""
