// The closure of a block of bits by one thread block: Warshall's algorithm, 32 vertices at a time. Thread i has row i in registers.
#pragma once

#include "bits.cuh"

// A <- A + A^2 + ... for n <= 32 W.
template <int W> __device__ __forceinline__ void close_bits(Bits A, int n) {
  static_assert(W % 4 == 0, "rows are read by 128 bits");
  // Of the 32 vertices: their rows, and the closure of what is between them. Two of each by turns, so that one barrier is enough.
  __shared__ uint4 rows[2][32][W / 4];
  __shared__ unsigned between[2][32];
  const int i = threadIdx.x, lane = i % 32;
  uint4* const place = reinterpret_cast<uint4*>(A.of_batch(blockIdx.x).words + i * A.row);

  unsigned a[W];
#pragma unroll
  for (int v = 0; v < W / 4; v++) {
    const uint4 some = i < n && v * 128 < n ? place[v] : uint4{};
    a[4 * v] = some.x, a[4 * v + 1] = some.y, a[4 * v + 2] = some.z, a[4 * v + 3] = some.w;
  }
  for (int w = 0; w * 32 < n; w++) {
    const int buffer = w & 1;
    unsigned to = 0;  // which of the 32 vertices this row reaches by an edge
#pragma unroll
    for (int v = 0; v < W; v++)
      if (v == w) to = a[v];
    if (i / 32 == w) {
      unsigned own = to;
#pragma unroll
      for (int k = 0; k < 32; k++) {
        const unsigned row = __shfl_sync(~0u, own, k);
        if (own >> k & 1) own |= row;
      }
      between[buffer][lane] = own;
#pragma unroll
      for (int v = 0; v < W / 4; v++) rows[buffer][lane][v] = {a[4 * v], a[4 * v + 1], a[4 * v + 2], a[4 * v + 3]};
    }
    __syncthreads();
    // A_iK <- A_iK + A_iK A_KK*, then A_i: <- A_i: + A_iK A_K:, where A_K: is still as it was.
    unsigned reached = to;
#pragma unroll
    for (int k = 0; k < 32; k++)
      if (to >> k & 1) reached |= between[buffer][k];
#pragma unroll 8
    for (int k = 0; k < 32; k++) {
      const unsigned mask = -(reached >> k & 1);
#pragma unroll
      for (int v = 0; v < W / 4; v++) {
        const uint4 row = rows[buffer][k][v];
        a[4 * v] |= mask & row.x, a[4 * v + 1] |= mask & row.y, a[4 * v + 2] |= mask & row.z, a[4 * v + 3] |= mask & row.w;
      }
    }
  }
#pragma unroll
  for (int v = 0; v < W / 4; v++)
    if (i < n && v * 128 < n) place[v] = {a[4 * v], a[4 * v + 1], a[4 * v + 2], a[4 * v + 3]};
}
