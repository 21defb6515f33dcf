// C <- C + A x B for each matrix of a stack of small ones: a warp has one, and all of its operands at once in shared memory.
#pragma once

#include "tile.cuh"

// Matrices of at most SIDE x SIDE elements. A lane has rows that lie 8 apart and columns that lie 4 apart. With a witness, a candidate that
// is strictly better takes the place of what there is, from the lowest k on.
template <class S, int SIDE, int WARPS, bool WITNESS> __device__ __forceinline__ void multiply_stack(const Products<S, 1>& products) {
  using E = typename S::Element;
  constexpr int TM = SIDE / 8, TN = SIDE / 4, PITCH = SIDE + 1;  // so that eight rows of a column are in eight banks
  __shared__ E a_of[WARPS][SIDE * PITCH], b_of[WARPS][SIDE * SIDE];
  if (!products.predicate.holds()) return;
  const Product<S>& product = products.product[0];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, down = lane / 4, across = lane % 4;
  const long long number = blockIdx.x * static_cast<long long>(WARPS) + warp;
  if (number >= product.tiles) return;
  Matrix<S> A = product.A, B = product.B, C = product.C;
  S::advance(A.pointers, number * A.batch);
  S::advance(B.pointers, number * B.batch);
  S::advance(C.pointers, number * C.batch);
  const int m = product.m, n = product.n, k = product.k;
  E *const a = a_of[warp], *const b = b_of[warp];
#pragma unroll
  for (int e = 0; e < SIDE * SIDE; e += 32) {
    const int r = (e + lane) / SIDE, c = (e + lane) % SIDE;
    if (r < m && c < k) a[r * PITCH + c] = S::get(A.pointers, A.at(r, c));
    if (r < k && c < n) b[r * SIDE + c] = S::get(B.pointers, B.at(r, c));
  }
  E total[TM][TN];
  int winner[TM][TN];
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) {
      const int r = down + 8 * i, c = across + 4 * j;
      total[i][j] = S::zero();
      if (WITNESS && !product.fresh && r < m && c < n) total[i][j] = S::add(total[i][j], S::get(C.pointers, C.at(r, c)));
      if (WITNESS) winner[i][j] = -1;
    }
  __syncwarp();
#pragma unroll 2
  for (int step = 0; step < k; step++) {
    E left[TM], right[TN];
#pragma unroll
    for (int i = 0; i < TM; i++) left[i] = a[(down + 8 * i) * PITCH + step];
#pragma unroll
    for (int j = 0; j < TN; j++) right[j] = b[step * SIDE + across + 4 * j];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++) {
        const E found = S::add(total[i][j], S::mul(left[i], right[j]));
        if (WITNESS && !S::same(found, total[i][j])) winner[i][j] = step;
        total[i][j] = found;
      }
  }
  auto* const via = product.witness.via + number * product.witness.batch;
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) {
      const int r = down + 8 * i, c = across + 4 * j;
      if (r >= m || c >= n) continue;
      if (!WITNESS && !product.fresh) total[i][j] = S::add(S::get(C.pointers, C.at(r, c)), total[i][j]);
      S::put(C.pointers, C.at(r, c), total[i][j]);
      if (WITNESS && (product.fresh || winner[i][j] >= 0))
        via[r * product.witness.row + c] = winner[i][j] < 0 ? -1 : int(product.witness.first) + winner[i][j];
    }
}
