// The closure of one pivot block, by one thread block, with the matrix in registers: Warshall's and Floyd's algorithm, or elimination.
//
// A thread has T x T elements, and SIDE x SIDE threads the block. The rows and columns of a few vertices at a time go through shared
// memory, into one of two buffers by turns, so that one barrier is enough for them.
#pragma once

#include "matrix.cuh"

// The construction matrix, or none.
struct Via {
  int* data;
  long long row, batch;
  int first;  // the vertex that the block's first row stands for
};

// COUNT neighbours out of shared memory and into it, by whole vectors.
template <int COUNT, class E> __device__ __forceinline__ void read(E (&to)[COUNT], const E* shared) {
  constexpr int V = Vector<E>::length;
  static_assert(COUNT % V == 0, "whole vectors");
#pragma unroll
  for (int v = 0; v < COUNT / V; v++) {
    const Vector<E> some = reinterpret_cast<const Vector<E>*>(shared)[v];
#pragma unroll
    for (int q = 0; q < V; q++) to[v * V + q] = some.element[q];
  }
}

template <int COUNT, class E> __device__ __forceinline__ void write(E* shared, const E (&from)[COUNT]) {
  constexpr int V = Vector<E>::length;
  static_assert(COUNT % V == 0, "whole vectors");
#pragma unroll
  for (int v = 0; v < COUNT / V; v++) {
    Vector<E> some;
#pragma unroll
    for (int q = 0; q < V; q++) some.element[q] = from[v * V + q];
    reinterpret_cast<Vector<E>*>(shared)[v] = some;
  }
}

template <class S, int T, int COUNT> struct Pivot {
  using E = typename S::Element;
  static constexpr int SIDE = 16, P = SIDE * T;  // P: the side of the largest block
  static_assert(T % (2 * COUNT) == 0, "a thread's vertices fill both buffers");

  const Matrix<S>& A;
  const int n, x, y;  // vertices; this thread's first column and row

  __device__ __forceinline__ Pivot(const Matrix<S>& A, int n) : A(A), n(n), x(threadIdx.x % SIDE * T), y(threadIdx.x / SIDE * T) {}

  // Calls body(i, j, place) for this thread's elements that exist: their place in registers, and in memory.
  template <class Body> __device__ __forceinline__ void each_element(Body body) const {
#pragma unroll
    for (int i = 0; i < T; i++)
#pragma unroll
      for (int j = 0; j < T; j++)
        if (y + i < n && x + j < n) body(i, j, A.at(y + i, x + j));
  }

  __device__ __forceinline__ void load(E (&a)[T][T]) const {
#pragma unroll
    for (int i = 0; i < T; i++)
#pragma unroll
      for (int j = 0; j < T; j++) {
        const E element = S::get(A.pointers, A.at(min(y + i, n - 1), min(x + j, n - 1)));
        a[i][j] = y + i < n && x + j < n ? element : S::zero();
      }
  }

  // Calls body(k, own, rows, columns) for all vertices, COUNT of them at a time: rows[p] and columns[p] are those of k + p, which the
  // threads with y <= k < y + T (or x) have in registers `own` + p. What lies beyond n is zero. The compiler knows `own`.
  template <class Body> __device__ __forceinline__ void each_vertex(const E (&a)[T][T], Body body) const {
    __shared__ Vector<E> shared[2][2][COUNT][P / Vector<E>::length];
    for (int first = 0; first < n; first += T)
#pragma unroll
      for (int own = 0; own < T; own += COUNT) {
        const int buffer = own / COUNT % 2;
        E(*const rows)[P] = reinterpret_cast<E(*)[P]>(shared[buffer][0]);
        E(*const columns)[P] = reinterpret_cast<E(*)[P]>(shared[buffer][1]);
#pragma unroll
        for (int p = 0; p < COUNT; p++) {
          if (y == first) write(rows[p] + x, a[own + p]);
          if (x == first) {
            E column[T];
#pragma unroll
            for (int i = 0; i < T; i++) column[i] = a[i][own + p];
            write(columns[p] + y, column);
          }
        }
        __syncthreads();
        body(first + own, own, rows, columns);
      }
  }
};

// harmful[batch] <- the least vertex whose pivot p has 1 + p != 1; the values mean nothing then.
//
// Two vertices k and l = k + 1 a barrier: every thread brings its parts of l's row and column to where k leaves them, so that both steps
// follow from what was there before k's. With a witness, whose registers would not suffice for that, it is one.
template <class S, int T, bool WITNESS> __device__ __forceinline__ void close_block(Matrix<S> A, int n, Via via, int* harmful) {
  using E = typename S::Element;
  constexpr int COUNT = WITNESS ? 1 : 2, V = Vector<E>::length, P = Pivot<S, T, COUNT>::P;
  S::advance(A.pointers, blockIdx.x * A.batch);
  const Pivot<S, T, COUNT> block(A, n);

  E a[T][T];
  __shared__ E pivots[P];
  int through[WITNESS ? T : 1][WITNESS ? T : 1];
  block.load(a);
  if constexpr (WITNESS)
#pragma unroll
    for (int i = 0; i < T; i++)
#pragma unroll
      for (int j = 0; j < T; j++) through[i][j] = -2;  // unchanged

  block.each_vertex(a, [&](int k, int own, const E(*rows)[P], const E(*columns)[P]) {
    E row[COUNT][T], k_to_l, l_to_k;
#pragma unroll
    for (int p = 0; p < COUNT; p++) read(row[p], rows[p] + block.x);
    if constexpr (COUNT == 2) {
      k_to_l = rows[0][k + 1];
      l_to_k = rows[1][k];
    }
    const E pivot = a[own][own], next = a[own + COUNT - 1][own + COUNT - 1];
#pragma unroll
    for (int v = 0; v < T; v += V) {
      E column[COUNT][V];
#pragma unroll
      for (int p = 0; p < COUNT; p++) read(column[p], columns[p] + block.y + v);
      if constexpr (COUNT == 2) {
#pragma unroll
        for (int j = 0; j < T; j++)
          if (v == 0) row[1][j] = S::add(row[1][j], S::mul(l_to_k, row[0][j]));
#pragma unroll
        for (int q = 0; q < V; q++) column[1][q] = S::add(column[1][q], S::mul(column[0][q], k_to_l));
      }
#pragma unroll
      for (int q = 0; q < V; q++)
#pragma unroll
        for (int j = 0; j < T; j++) {
          E& element = a[v + q][j];
          if constexpr (WITNESS) {
            const E better = S::add(element, S::mul(column[0][q], row[0][j]));
            if (!S::same(better, element)) through[v + q][j] = via.first + k;
            element = better;
          } else {
            const E left[2] = {column[0][q], column[1][q]}, right[2] = {row[0][j], row[1][j]};
#pragma unroll
            for (int p = 0; p < 2; p += S::steps) S::accumulate(element, left + p, right + p);
          }
        }
    }
    if (block.x == k - own && block.y == k - own) {
      pivots[k] = pivot;
      if constexpr (COUNT == 2) pivots[k + 1] = S::add(next, S::mul(l_to_k, k_to_l));
    }
  });

  __syncthreads();
  for (int k = threadIdx.x; k < n; k += blockDim.x)
    if (!S::harmless(pivots[k])) atomicMin(harmful + blockIdx.x, via.first + k);
  block.each_element([&](int i, int j, long long place) {
    S::put(A.pointers, place, a[i][j]);
    if constexpr (WITNESS) {
      if (through[i][j] != -2) via.data[blockIdx.x * via.batch + (block.y + i) * via.row + block.x + j] = through[i][j];
    }
  });
}

// a_ij <- a_ij + a_ik p* a_kj for i, j != k; a_ik <- a_ik p*; a_kj <- p* a_kj; a_kk <- p*. harmful[batch] <- the first vertex without a star.
template <class S, int T> __device__ __forceinline__ void eliminate_block(Matrix<S> A, int n, Via via, int* harmful) {
  using E = typename S::Element;
  constexpr int P = Pivot<S, T, 1>::P;
  S::advance(A.pointers, blockIdx.x * A.batch);
  const Pivot<S, T, 1> block(A, n);

  E a[T][T];
  block.load(a);

  block.each_vertex(a, [&](int k, int own, const E(*rows)[P], const E(*columns)[P]) {
    if (k >= n) return;
    const E pivot = rows[0][k];
    if (threadIdx.x == 0 && S::diverges(pivot)) atomicMin(harmful + blockIdx.x, via.first + k);
    const E star = S::star(pivot);
    E row[T], column[T];
    read(row, rows[0] + block.x);
    read(column, columns[0] + block.y);
#pragma unroll
    for (int i = 0; i < T; i++) {
      const bool own_row = i == own && block.y == k - own;
      const E left = S::mul(column[i], star);
#pragma unroll
      for (int j = 0; j < T; j++) {
        const bool own_column = j == own && block.x == k - own;
        if (own_row)
          a[i][j] = own_column ? star : S::mul(star, row[j]);
        else
          a[i][j] = own_column ? left : S::add(a[i][j], S::mul(left, row[j]));
      }
    }
  });

  block.each_element([&](int i, int j, long long place) { S::put(A.pointers, place, a[i][j]); });
}

// A <- I + A.
template <class S> __device__ __forceinline__ void include_identity(Matrix<S> A, int n) {
  S::advance(A.pointers, blockIdx.y * A.batch);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const long long at = A.at(i, i);
    S::put(A.pointers, at, S::add(S::one(), S::get(A.pointers, at)));
  }
}

// harmful[batch] <- the least vertex whose loop p has 1 + p != 1.
template <class S> __device__ __forceinline__ void test_loops(Matrix<S> A, int n, int first, int* harmful) {
  S::advance(A.pointers, blockIdx.y * A.batch);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    if (!S::harmless(S::get(A.pointers, A.at(i, i)))) atomicMin(harmful + blockIdx.y, first + i);
}
