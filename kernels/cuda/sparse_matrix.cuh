// Compressed rows times a matrix.
//
// A row is shared by LANES neighbouring lanes, each of which has COLUMNS columns, V side by side. Rows that follow each other often meet the
// same rows of B, which the first-level cache has then; what it has to do is little else, as an entry is one access to shared memory.
#pragma once

#include "sparse_tiles.cuh"

// An entry as lanes read it: the number of its column, and its value.
template <class F> struct Entry {
  typename F::Index column;
  typename F::S::Element value;
};

// The entries of a tile in shared memory. Where they are MIXED, a place is left free after each 16: rows of as many begin in other banks.
template <class F> struct Entries {
  using S = typename F::S;

  static __device__ __forceinline__ Entry<F>& at(int e) { return reinterpret_cast<Entry<F>*>(shared_memory)[F::MIXED ? e + (e >> 4) : e]; }

  // Brings them there, and looks at each one; N of a thread are on their way at a time.
  static __device__ __forceinline__ void bring(const Sparse<S>& product, const Segments<F>& own, Seen<F>& seen) {
    using Index = typename F::Index;
    using E = typename S::Element;
    constexpr int N = sizeof(Entry<F>) <= 8 ? 8 : 4;
    const Index* const columns = static_cast<const Index*>(product.columns) + own.first;
    typename S::Pointers values = product.values;
    S::advance(values, own.first);
    for (int first = threadIdx.x; first < own.entries; first += N * blockDim.x) {
      Index column[N];
      E value[N];
#pragma unroll
      for (int q = 0; q < N; q++) {
        const int e = min(first + q * int(blockDim.x), own.entries - 1);
        column[q] = columns[e], value[q] = S::get(values, e);
      }
#pragma unroll
      for (int q = 0; q < N; q++)
        if (const int e = first + q * int(blockDim.x); e < own.entries) at(e) = {seen.known(column[q]), value[q]}, seen.take(value[q]);
    }
  }
};

// The columns of a lane: V side by side, and as many again beyond those of the other LANES.
template <int LANES, int COLUMNS, int V> struct Columns {
  int first, n;
  static __device__ __forceinline__ constexpr int apart(int c) { return c / V * (LANES * V) + c % V; }
  __device__ __forceinline__ int at(int c) const { return first + apart(c); }
  __device__ __forceinline__ bool has(int c) const { return c / V == 0 || at(c / V * V) < n; }

  // Elements of a row of B, of which `row` is the first one of this lane.
  template <class S, class E> __device__ __forceinline__ void get(E (&found)[COLUMNS], const typename S::Pointers& row) const {
#pragma unroll
    for (int c = 0; c < COLUMNS; c += V) {
      if constexpr (V == 1) {
        found[c] = has(c) ? S::get(row, apart(c)) : S::zero();
      } else if (has(c)) {
        const Vector<E> some = S::get_vector(row, apart(c));
#pragma unroll
        for (int q = 0; q < V; q++) found[c + q] = some.element[q];
      }
    }
  }
  // Elements of a row of C, which begins at the element `to`.
  template <class S, class E> __device__ __forceinline__ void put(const E (&found)[COLUMNS], const typename S::Pointers& out, long long to) const {
#pragma unroll
    for (int c = 0; c < COLUMNS; c += V) {
      if (!has(c)) break;
      if constexpr (V == 1) {
        S::put(out, to + at(c), found[c]);
      } else {
        Vector<E> some;
#pragma unroll
        for (int q = 0; q < V; q++) some.element[q] = found[c + q];
        S::put_vector(out, to + at(c), some);
      }
    }
  }
};

// Adds the terms of N entries from e on, with their rows of B on their way at a time.
template <int N, class F, class C, int COLUMNS>
__device__ __forceinline__ void add_rows(const Sparse<typename F::S>& product, typename F::Sum (&sums)[COLUMNS], const typename F::S::Pointers& right, const C& mine, int e) {
  using S = typename F::S;
  Entry<F> entry[N];
  typename S::Element row[N][COLUMNS];
#pragma unroll
  for (int q = 0; q < N; q++) entry[q] = Entries<F>::at(e + q);
#pragma unroll
  for (int q = 0; q < N; q++) mine.template get<S>(row[q], S::row(right, entry[q].column, unsigned(product.right_row)));
#pragma unroll
  for (int q = 0; q < N; q++)
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) add_term<F>(product, sums[c], entry[q].value, row[q][c], int(entry[q].column));
}

// Brings the entries of a block to shared memory, and tells of numbers in them, or in its share of B, that make the product void.
template <class F, int LANES, int COLUMNS, int V>
__device__ __forceinline__ void prepare(const Sparse<typename F::S>& product, const Segments<F>& own, Columns<LANES, COLUMNS, V> mine, int group) {
  using S = typename F::S;
  Seen<F> seen(product);
  Entries<F>::bring(product, own, seen);
  seen.known.strange |= own.strange(product);
  if constexpr (F::CHECKED) {
    const Share share(product, own.tile);
    for (; mine.first < mine.n; mine.first += LANES * COLUMNS)
      for (long long k = share.first + group; k < share.last; k += blockDim.x / LANES) {
        typename S::Pointers row = product.right;
        S::advance(row, k * product.right_row + mine.first);
        typename S::Element found[COLUMNS];
        mine.template get<S>(found, row);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
          if (mine.has(c)) seen.take(found[c]);
      }
  }
  seen.tell(product);
}

// A x B for a matrix B.
template <class F, int LANES, int COLUMNS, int V> __device__ __forceinline__ void multiply_matrix(const Sparse<typename F::S>& product) {
  using S = typename F::S;
  using Sum = typename F::Sum;
  using E = typename S::Element;
  constexpr int N = sizeof(E) * COLUMNS <= 20 ? 4 : 2;
  const Segments<F> own(product, blockIdx.x);
  const int groups = blockDim.x / LANES, n = int(product.n);
  const int group = threadIdx.x < groups * LANES ? threadIdx.x / LANES : 1 << 30;  // none for the threads that are left over
  Columns<LANES, COLUMNS, V> mine{int(threadIdx.x) % LANES * V, n};
  prepare<F>(product, own, mine, group);
  int e = own.begin(group), end = own.end(group);
  __syncthreads();
  for (; mine.first < n; mine.first += LANES * COLUMNS) {
    typename S::Pointers right = product.right;
    S::advance(right, mine.first), S::keep(right);
    for (int s = group; s < own.count; s += groups) {
      Sum sums[COLUMNS];
#pragma unroll 1
      for (; e + N <= end; e += N) add_rows<N, F>(product, sums, right, mine, e);
      if (N > 2 && e + 2 <= end) add_rows<2, F>(product, sums, right, mine, e), e += 2;
      if (e < end) add_rows<1, F>(product, sums, right, mine, e);
      if (own.begins(s) && own.ends(s)) {
        const long long to = (own.first_row + s) * product.n;
        E found[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
          if (mine.has(c)) found[c] = settled<F>(product, sums[c], to + mine.at(c));
        mine.template put<S>(found, product.out, to);
      } else {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
          if (mine.has(c)) part_of<F>(product, own.tile, !own.ends(s), mine.at(c)) = sums[c];
      }
      const int next = s + groups < own.count ? s + groups : group;
      e = own.begin(next), end = own.end(next);
    }
  }
  if (threadIdx.x == 0) product.closed[own.tile] = own.last_row > own.first_row && !own.begins(0);
}
