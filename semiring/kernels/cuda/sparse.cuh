// Products of a sparse matrix, by compressed rows, and a dense one: C_i = C_i + sum over the entries a_ik of row i of a_ik x B_k.
//
// A launch has three phases: where tiles are cut is looked up, tiles are multiplied, and the sums of rows that were cut are joined.
#pragma once

#include "sparse_matrix.cuh"
#include "sparse_vector.cuh"

enum Phase { CUT, MULTIPLY, JOIN };

// One element of the row that tile t ends: C <- C + the parts that go on, from the tile in which the row begins, and the last one.
template <class F> __device__ __forceinline__ void join_parts(const Sparse<typename F::S>& product, long long t, long long column) {
  const auto* const starts = static_cast<const typename F::Index*>(product.starts);
  const long long row = product.cuts[2 * t], begin = min(max((row + starts[row]) / product.items, 0ll), t), at = row * product.n + column;
  typename F::Sum sum = part_of<F>(product, begin, true, column);
#pragma unroll 4
  for (long long i = begin + 1; i < t; i++) sum.join(part_of<F>(product, i, true, column));
  sum.join(part_of<F>(product, t, false, column));
  F::S::put(product.out, at, settled<F>(product, sum, at));
}

// All of them: a warp looks at 32 tiles, of which with a vector a lane has one, and with a matrix all lanes have each.
template <class F> __device__ __forceinline__ void join(const Sparse<typename F::S>& product) {
  const long long t = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x, lane = threadIdx.x % 32;
  const bool closed = t < product.tiles && product.closed[t];
  if (product.n == 1) {
    if (closed) join_parts<F>(product, t, 0);
  } else {
    for (unsigned left = __ballot_sync(0xffffffff, closed); left; left &= left - 1)
      for (long long j = lane; j < product.n; j += 32) join_parts<F>(product, t - lane + __ffs(left) - 1, j);
  }
}

template <class F, int LANES, int COLUMNS, int V, bool MATRIX> __device__ __forceinline__ void sparse_product(const Sparse<typename F::S>& product) {
  if (product.phase == CUT)
    cut<typename F::S, typename F::Index>(product);
  else if (product.phase == JOIN)
    join<F>(product);
  else if constexpr (MATRIX)
    multiply_matrix<F, LANES, COLUMNS, V>(product);
  else
    multiply_vector<F, LANES>(product);
}
