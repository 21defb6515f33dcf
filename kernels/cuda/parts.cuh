// Sums of parts of a product's steps become its result.
#pragma once

#include "products.cuh"

// C <- C + P_0 + P_1 + ..., or without C if it is fresh, for m x n elements and `count` parts that are a batch.
template <class S> __device__ __forceinline__ void add_parts(Matrix<S> C, Matrix<S> P, int m, int n, int count, bool fresh, Turn turn) {
  if (!turn.comes()) return;
  const long long e = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  const int r = int(e / n), c = int(e % n);
  if (r >= m) return;
  auto sum = fresh ? S::zero() : S::get(C.pointers, C.at(r, c));
#pragma unroll 4
  for (int part = 0; part < count; part++) sum = S::add(sum, S::get(P.pointers, P.at(r, c) + part * P.batch));
  S::put(C.pointers, C.at(r, c), sum);
}
