// The closure of one pivot block, by one thread block, with the matrix in registers: the Floyd-Warshall algorithm, or elimination.
//
// A thread has TM x TN elements, in groups of G neighbours that are P / TM * G rows and P / TN * G columns apart; neighbouring threads have
// neighbouring groups. The rows and columns of a few vertices at a time go through shared memory, in two alternating buffers, so that one
// barrier is enough.
#pragma once

#include "arithmetic.cuh"

// The construction matrix, or none.
struct Via { VIA_FIELDS };

template <class S, int P, int TM, int TN, int COUNT> struct Pivot {
  using E = typename S::Element;
  static constexpr int V = Vector<E>::length, G = V < COUNT ? COUNT : V;
  static constexpr int M = P / TM, N = P / TN;  // threads down a column and along a row
  static_assert(TM % G == 0 && TN % G == 0 && G % V == 0 && G % COUNT == 0, "groups of whole vectors, and of vertices that go together");

  const DeviceMatrix<S>& A;
  const int n;     // vertices
  const int y, x;  // this thread's first row and column

  // A warp has 4 x 8 threads.
  __device__ __forceinline__ Pivot(const DeviceMatrix<S>& A, int n)
      : A(A), n(n), y((thread_number() / 4 / N * 4 + thread_number() / 8 % 4) * G), x((thread_number() / 32 * 8 % N + thread_number() % 8) * G) {}

  __device__ __forceinline__ int row(int i) const { return y + i / G * (M * G) + i % G; }
  __device__ __forceinline__ int column(int j) const { return x + j / G * (N * G) + j % G; }

  // Calls body(i, j, place) for this thread's existing elements, every W-th of a row: position in registers, and in memory.
  template <int W, class Body> __device__ __forceinline__ void each_element(Body body) const {
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j += W)
        if (row(i) < n && column(j) < n) body(i, j, A.at(row(i), column(j)));
  }

  // Returns true if memory can be accessed by vectors.
  __device__ __forceinline__ bool in_vectors() const {
    return S::vectors && A.column == 1 && n % V == 0 && A.row % V == 0 && S::aligned(A.pointers);
  }

  __device__ __forceinline__ void load(E (&a)[TM][TN]) const {
    fill(a, S::zero());
    if (in_vectors())
      each_element<V>([&](int i, int j, long long place) { unpack(&a[i][j], S::get_vector(A.pointers, place)); });
    else
      each_element<1>([&](int i, int j, long long place) { a[i][j] = S::get(A.pointers, place); });
  }

  __device__ __forceinline__ void store(const E (&a)[TM][TN]) const {
    if (in_vectors())
      each_element<V>([&](int i, int j, long long place) { S::put_vector(A.pointers, place, packed(&a[i][j])); });
    else
      each_element<1>([&](int i, int j, long long place) { S::put(A.pointers, place, a[i][j]); });
  }

  // Reads this thread's T elements of a row or column in shared memory; `shared` is the first one.
  template <int T> static __device__ __forceinline__ void read(E (&to)[T], const E* shared) {
#pragma unroll
    for (int t = 0; t < T; t += V) unpack(to + t, *reinterpret_cast<const Vector<E>*>(shared + t / G * (P / T * G) + t % G));
  }
  template <int T> static __device__ __forceinline__ void write(E* shared, const E (&from)[T]) {
#pragma unroll
    for (int t = 0; t < T; t += V) *reinterpret_cast<Vector<E>*>(shared + t / G * (P / T * G) + t % G) = packed(from + t);
  }

  // Calls body(k, i, j, rows, columns) for COUNT vertices at a time: rows[p] and columns[p] belong to vertex k + p, and are a[i + p] and
  // a[..][j + p] of the threads that hold them. Elements beyond n are zero. The compiler knows i and j.
  template <class Body> __device__ __forceinline__ void each_vertex(const E (&a)[TM][TN], Body body) const {
    constexpr int T = TM > TN ? TM : TN, SPAN = P / T * G;  // vertices in the same registers
    __shared__ Vector<E> shared[2][2][COUNT][P / V];
#pragma unroll
    for (int part = 0; part < T / G; part++)
      for (int first = part * SPAN; first < (part + 1) * SPAN && first < n; first += G)
#pragma unroll
        for (int own = 0; own < G; own += COUNT) {
          const int k = first + own, i = part * TM / T * G + own, j = part * TN / T * G + own, buffer = k / COUNT % 2;
          E(*const rows)[P] = reinterpret_cast<E(*)[P]>(shared[buffer][0]);
          E(*const columns)[P] = reinterpret_cast<E(*)[P]>(shared[buffer][1]);
#pragma unroll
          for (int p = 0; p < COUNT; p++) {
            if (row(i) == k) write(rows[p] + x, a[i + p]);
            if (column(j) == k) {
              E elements[TM];
#pragma unroll
              for (int r = 0; r < TM; r++) elements[r] = a[r][j + p];
              write(columns[p] + y, elements);
            }
          }
          __syncthreads();
          body(k, i, j, rows, columns);
        }
  }
};

// *divergent <- the least vertex with a loop p such that 1 + p != 1; thread `begin` of `here` threads.
template <class S> __device__ __forceinline__ void find_divergent(const DeviceMatrix<S>& A, int n, int begin, int here, int first, int* divergent) {
  for (int i = begin; i < n; i += here)
    if (!S::harmless(S::get(A.pointers, A.at(i, i)))) atomicMin(divergent, first + i);
}

// divergent[batch] <- the least vertex whose pivot p has 1 + p != 1; the values are then invalid. With `loops`, loops that rounding made
// divergent after the test of their pivot are reported too.
//
// Two vertices k and l = k + 1 share a barrier: every thread updates its parts of l's row and column by k, so that both steps start
// from the matrix before k. With a witness, registers suffice for one vertex only.
template <class S, int P, int TM, int TN, bool WITNESS>
__device__ __forceinline__ void close_block(DeviceMatrix<S> A, int n, Via via, int* divergent, bool loops) {
  using E = typename S::Element;
  constexpr int COUNT = WITNESS ? 1 : 2;
  using Block = Pivot<S, P, TM, TN, COUNT>;
  S::advance(A.pointers, blockIdx.x * A.batch);
  const Block block(A, n);

  E a[TM][TN];
  int through[WITNESS ? TM : 1][WITNESS ? TN : 1];
  E pivots[COUNT];  // of vertices COUNT * threadIdx.x + p
  block.load(a);
  fill(pivots, S::zero());
  if constexpr (WITNESS) fill(through, -2);  // unchanged

  block.each_vertex(a, [&](int k, int, int, const E(*rows)[P], const E(*columns)[P]) {
    const bool mine = threadIdx.x == k / COUNT;
    if (mine) pivots[0] = rows[0][k];
    E row[COUNT][TN], k_to_l, l_to_k;
#pragma unroll
    for (int p = 0; p < COUNT; p++) block.read(row[p], rows[p] + block.x);
    if constexpr (COUNT == 2) {
      k_to_l = rows[0][k + 1];
      l_to_k = rows[1][k];
#pragma unroll
      for (int j = 0; j < TN; j++) row[1][j] = S::add(row[1][j], S::mul(l_to_k, row[0][j]));
      if (mine) pivots[1] = S::add(rows[1][k + 1], S::mul(l_to_k, k_to_l));
    }
#pragma unroll
    for (int i = 0; i < TM; i += Block::V) {
      E column[COUNT][Block::V];
#pragma unroll
      for (int p = 0; p < COUNT; p++) unpack(column[p], *reinterpret_cast<const Vector<E>*>(columns[p] + block.row(i)));
#pragma unroll
      for (int q = 0; q < Block::V; q++) {
        if constexpr (COUNT == 2) column[1][q] = S::add(column[1][q], S::mul(column[0][q], k_to_l));
#pragma unroll
        for (int j = 0; j < TN; j++) {
          E& element = a[i + q][j];
          if constexpr (WITNESS) {
            const E better = S::add(element, S::mul(column[0][q], row[0][j]));
            if (!S::same(better, element)) through[i + q][j] = via.first + k;
            element = better;
          } else {
            const E left[2] = {column[0][q], column[1][q]}, right[2] = {row[0][j], row[1][j]};
#pragma unroll
            for (int p = 0; p < 2; p += S::steps) S::accumulate(element, left + p, right + p);
          }
        }
      }
    }
  });

#pragma unroll
  for (int p = 0; p < COUNT; p++)
    if (!S::harmless(pivots[p])) atomicMin(divergent + blockIdx.x, via.first + COUNT * int(threadIdx.x) + p);
  const Block end(A, n);  // computed anew, to free registers during the loop
  end.store(a);
  if constexpr (WITNESS)
    end.template each_element<1>([&](int i, int j, long long) {
      if (through[i][j] != -2) via.data[blockIdx.x * via.batch + end.row(i) * via.row + end.column(j)] = through[i][j];
    });
  if (loops) {
    __syncthreads();
    find_divergent(A, n, threadIdx.x, blockDim.x, via.first, divergent + blockIdx.x);
  }
}

// a_ij <- a_ij + a_ik p* a_kj for i, j != k; a_ik <- a_ik p*; a_kj <- p* a_kj; a_kk <- p*.
// divergent[batch] <- the first vertex without a star.
template <class S, int P, int TM, int TN> __device__ __forceinline__ void eliminate_block(DeviceMatrix<S> A, int n, Via via, int* divergent) {
  using E = typename S::Element;
  S::advance(A.pointers, blockIdx.x * A.batch);
  const Pivot<S, P, TM, TN, 1> block(A, n);

  E a[TM][TN];
  block.load(a);

  block.each_vertex(a, [&](int k, int own_i, int own_j, const E(*rows)[P], const E(*columns)[P]) {
    if (k >= n) return;
    const E pivot = rows[0][k];
    if (threadIdx.x == 0 && S::diverges(pivot)) atomicMin(divergent + blockIdx.x, via.first + k);
    const E star = S::star(pivot);
    E row[TN], column[TM];
    block.read(row, rows[0] + block.x);
    block.read(column, columns[0] + block.y);
#pragma unroll
    for (int i = 0; i < TM; i++) {
      const bool own_row = i == own_i && block.row(i) == k;
      const E left = S::mul(column[i], star);
#pragma unroll
      for (int j = 0; j < TN; j++) {
        const bool own_column = j == own_j && block.column(j) == k;
        if (own_row)
          a[i][j] = own_column ? star : S::mul(star, row[j]);
        else
          a[i][j] = own_column ? left : S::add(a[i][j], S::mul(left, row[j]));
      }
    }
  });

  Pivot<S, P, TM, TN, 1>(A, n).store(a);
}

// A <- I + A.
template <class S> __device__ __forceinline__ void include_identity(DeviceMatrix<S> A, int n) {
  S::advance(A.pointers, blockIdx.y * A.batch);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const long long at = A.at(i, i);
    S::put(A.pointers, at, S::add(S::one(), S::get(A.pointers, at)));
  }
}

// divergent[batch] <- the least vertex whose loop p has 1 + p != 1.
template <class S> __device__ __forceinline__ void test_loops(DeviceMatrix<S> A, int n, int first, int* divergent) {
  S::advance(A.pointers, blockIdx.y * A.batch);
  find_divergent(A, n, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x, first, divergent + blockIdx.y);
}
