// C <- C + A x B as GPUs of 2008 were first taught it: a thread computes one element, and tiles of B x B elements of both operands
// go through shared memory. Katz and Kider update their tiles this way; Buluç, Gilbert and Budak call it the simple product.
#pragma once

#include "memory.cuh"

template <class S, int B> __device__ __forceinline__ void update_tile(DeviceMatrix<S> A, DeviceMatrix<S> X, DeviceMatrix<S> C, int m, int n, int k) {
  using E = typename S::Element;
  __shared__ E left[B][B], right[B][B];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * B + y, column = blockIdx.x * B + x;
  E sum = S::zero();
  for (int first = 0; first < k; first += B) {
    const int a = first + x, b = first + y;
    left[y][x] = row < m && a < k ? S::get(A.pointers, A.at(row, a)) : S::zero();
    right[y][x] = b < k && column < n ? S::get(X.pointers, X.at(b, column)) : S::zero();
    __syncthreads();
#pragma unroll
    for (int q = 0; q < B; q++) sum = S::add(sum, S::mul(left[y][q], right[q][x]));
    __syncthreads();
  }
  if (row < m && column < n) S::put(C.pointers, C.at(row, column), S::add(S::get(C.pointers, C.at(row, column)), sum));
}
