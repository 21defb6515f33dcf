// The closure of one pivot block, by one thread block, with the matrix in registers: Warshall's and Floyd's algorithm, or elimination.
//
// A thread has T x T elements whose rows and columns lie P / T apart. For each vertex k its row and column go through shared memory, into
// one of two buffers by turns, so that one barrier a vertex is enough.
#pragma once

#include "matrix.cuh"

// The construction matrix, or none.
struct Via {
  int* data;
  long long row, batch;
  int first;  // the vertex that the block's first row stands for
};

template <class S, int P, int T> struct Pivot {
  using E = typename S::Element;
  static constexpr int side = P / T, threads = side * side;

  // Calls body(k) for the vertices in order; i = k / side is known to the compiler, so that elements stay in registers.
  template <class Body> static __device__ __forceinline__ void each_vertex(int n, Body body) {
#pragma unroll
    for (int i = 0; i < T; i++)
      for (int q = 0; q < side && i * side + q < n; q++) body(i, q);
  }
};

// harmful[batch] <- the least vertex whose pivot p has 1 + p != 1; the values mean nothing then.
template <class S, int P, int T, bool WITNESS>
__device__ __forceinline__ void close_block(Matrix<S> A, int n, Via via, int* harmful) {
  using E = typename S::Element;
  using Shape = Pivot<S, P, T>;
  constexpr int side = Shape::side;
  __shared__ E rows[2][P], columns[2][P];
  S::advance(A.pointers, blockIdx.x * A.batch);
  const int x = threadIdx.x % side, y = threadIdx.x / side;

  E a[T][T];
  int through[WITNESS ? T : 1][WITNESS ? T : 1];
#pragma unroll
  for (int i = 0; i < T; i++)
#pragma unroll
    for (int j = 0; j < T; j++) {
      const int r = y + i * side, c = x + j * side;
      a[i][j] = r < n && c < n ? S::get(A.pointers, A.at(r, c)) : S::zero();
      if constexpr (WITNESS) through[i][j] = -2;  // unchanged
    }

  Shape::each_vertex(n, [&](int own, int q) {
    const int k = own * side + q, buffer = k & 1;
    if (y == q)
#pragma unroll
      for (int j = 0; j < T; j++) rows[buffer][x + j * side] = a[own][j];
    if (x == q)
#pragma unroll
      for (int i = 0; i < T; i++) columns[buffer][y + i * side] = a[i][own];
    __syncthreads();
    if (threadIdx.x == 0 && !S::harmless(rows[buffer][k])) atomicMin(harmful + blockIdx.x, via.first + k);
    E row[T];
#pragma unroll
    for (int j = 0; j < T; j++) row[j] = rows[buffer][x + j * side];
#pragma unroll
    for (int i = 0; i < T; i++) {
      const E column = columns[buffer][y + i * side];
#pragma unroll
      for (int j = 0; j < T; j++) {
        const E better = S::add(a[i][j], S::mul(column, row[j]));
        if constexpr (WITNESS) {
          if (!S::same(better, a[i][j])) through[i][j] = via.first + k;
        }
        a[i][j] = better;
      }
    }
  });

#pragma unroll
  for (int i = 0; i < T; i++)
#pragma unroll
    for (int j = 0; j < T; j++) {
      const int r = y + i * side, c = x + j * side;
      if (r < n && c < n) {
        S::put(A.pointers, A.at(r, c), a[i][j]);
        if constexpr (WITNESS) {
          if (through[i][j] != -2) via.data[blockIdx.x * via.batch + r * via.row + c] = through[i][j];
        }
      }
    }
}

// a_ij <- a_ij + a_ik p* a_kj for i, j != k; a_ik <- a_ik p*; a_kj <- p* a_kj; a_kk <- p*. harmful[batch] <- the first vertex without a star.
template <class S, int P, int T> __device__ __forceinline__ void eliminate_block(Matrix<S> A, int n, Via via, int* harmful) {
  using E = typename S::Element;
  using Shape = Pivot<S, P, T>;
  constexpr int side = Shape::side;
  __shared__ E rows[2][P], columns[2][P];
  S::advance(A.pointers, blockIdx.x * A.batch);
  const int x = threadIdx.x % side, y = threadIdx.x / side;

  E a[T][T];
#pragma unroll
  for (int i = 0; i < T; i++)
#pragma unroll
    for (int j = 0; j < T; j++) {
      const int r = y + i * side, c = x + j * side;
      a[i][j] = r < n && c < n ? S::get(A.pointers, A.at(r, c)) : S::zero();
    }

  Shape::each_vertex(n, [&](int own, int q) {
    const int k = own * side + q, buffer = k & 1;
    if (y == q)
#pragma unroll
      for (int j = 0; j < T; j++) rows[buffer][x + j * side] = a[own][j];
    if (x == q)
#pragma unroll
      for (int i = 0; i < T; i++) columns[buffer][y + i * side] = a[i][own];
    __syncthreads();
    const E pivot = rows[buffer][k];
    if (threadIdx.x == 0 && S::diverges(pivot)) atomicMin(harmful + blockIdx.x, via.first + k);
    const E star = S::star(pivot);
#pragma unroll
    for (int i = 0; i < T; i++) {
      const bool own_row = i == own && y == q;
      const E left = S::mul(columns[buffer][y + i * side], star);
#pragma unroll
      for (int j = 0; j < T; j++) {
        const bool own_column = j == own && x == q;
        const E row = rows[buffer][x + j * side];
        if (own_row)
          a[i][j] = own_column ? star : S::mul(star, row);
        else
          a[i][j] = own_column ? left : S::add(a[i][j], S::mul(left, row));
      }
    }
  });

#pragma unroll
  for (int i = 0; i < T; i++)
#pragma unroll
    for (int j = 0; j < T; j++) {
      const int r = y + i * side, c = x + j * side;
      if (r < n && c < n) S::put(A.pointers, A.at(r, c), a[i][j]);
    }
}

// A <- I + A.
template <class S> __device__ __forceinline__ void include_identity(Matrix<S> A, int n) {
  S::advance(A.pointers, blockIdx.y * A.batch);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const long long at = A.at(i, i);
    S::put(A.pointers, at, S::add(S::one(), S::get(A.pointers, at)));
  }
}
