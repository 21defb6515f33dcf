// Products of a matrix and a vector, which take as long as the matrix takes to be read: C <- C + A x B where B is a column, or A a row.
#pragma once

#include "tile.cuh"

// The element of the lane whose number differs in a bit.
template <class E> __device__ __forceinline__ E of_other_lane(const E& x, int bit) {
  constexpr int WORDS = sizeof(E) / 4;
  union Words {
    E element;
    unsigned word[WORDS];
    __device__ __forceinline__ Words() {}
  } mine, others;
  mine.element = x;
#pragma unroll
  for (int w = 0; w < WORDS; w++) others.word[w] = __shfl_xor_sync(0xffffffff, mine.word[w], bit);
  return others.element;
}

// A x B for a column B: a warp has ROWS rows of A, so that B is read once for all of them, and its lanes neighbouring elements.
template <class S, int WARPS, int ROWS, bool VECTORS> __device__ __forceinline__ void multiply_column(const Products<S, 1>& products) {
  using E = typename S::Element;
  constexpr int V = VECTORS ? Vector<E>::length : 1;
  if (!products.predicate.holds()) return;
  const Product<S>& product = products.product[0];
  const Matrix<S>&A = product.A, &B = product.B, &C = product.C;
  const int lane = threadIdx.x % 32, m = product.m, k = product.k;
  const int top = (blockIdx.x * WARPS + threadIdx.x / 32) * ROWS;
  if (top >= m) return;
  E total[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; i++) total[i] = S::zero();
  const int whole = k / V * V;
#pragma unroll 2
  for (int step = lane * V; step < whole; step += 32 * V) {
    Vector<E, V> left[ROWS];
    E right[V];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      const long long at = A.at(min(top + i, m - 1), step);
      if constexpr (VECTORS)
        left[i] = S::get_vector(A.pointers, at);
      else
        left[i].element[0] = S::get(A.pointers, at);
    }
#pragma unroll
    for (int q = 0; q < V; q++) right[q] = S::get(B.pointers, B.at(step + q, 0));
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
      for (int q = 0; q < V; q++) total[i] = S::add(total[i], S::mul(left[i].element[q], right[q]));
  }
  if (whole + lane < k) {
    const E right = S::get(B.pointers, B.at(whole + lane, 0));
#pragma unroll
    for (int i = 0; i < ROWS; i++) total[i] = S::add(total[i], S::mul(S::get(A.pointers, A.at(min(top + i, m - 1), whole + lane)), right));
  }
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
#pragma unroll
    for (int bit = 16; bit > 0; bit /= 2) total[i] = S::add(total[i], of_other_lane(total[i], bit));
    if (lane == 0 && top + i < m) {
      const long long at = C.at(top + i, 0);
      S::put(C.pointers, at, product.fresh ? total[i] : S::add(S::get(C.pointers, at), total[i]));
    }
  }
}

// A x B for a row A: a thread has neighbouring columns of B, and a block some of the steps, whose sums are a batch of results.
template <class S, int THREADS, bool VECTORS> __device__ __forceinline__ void multiply_row(const Products<S, 1>& products) {
  using E = typename S::Element;
  constexpr int V = VECTORS ? Vector<E>::length : 1;
  if (!products.predicate.holds()) return;
  const Product<S>& product = products.product[0];
  const Matrix<S>&A = product.A, &B = product.B;
  Matrix<S> C = product.C;
  const int n = product.n, k = product.k, across = (n + THREADS * V - 1) / (THREADS * V);
  const int part = blockIdx.x / across, column = (blockIdx.x % across * THREADS + threadIdx.x) * V;
  if (column >= n) return;
  const int first = part * int(product.depth), last = min(k, first + int(product.depth));
  E total[V];
#pragma unroll
  for (int q = 0; q < V; q++) total[q] = S::zero();
#pragma unroll 8
  for (int step = first; step < last; step++) {
    const E left = S::get(A.pointers, A.at(0, step));
    Vector<E, V> right;
    if constexpr (VECTORS)
      right = S::get_vector(B.pointers, B.at(step, column));
    else
      right.element[0] = S::get(B.pointers, B.at(step, column));
#pragma unroll
    for (int q = 0; q < V; q++) total[q] = S::add(total[q], S::mul(left, right.element[q]));
  }
  S::advance(C.pointers, part * C.batch);
#pragma unroll
  for (int q = 0; q < V; q++)
    if (column + q < n) {
      const long long at = C.at(0, column + q);
      S::put(C.pointers, at, product.fresh ? total[q] : S::add(S::get(C.pointers, at), total[q]));
    }
}
