// Compressed rows times a matrix.
//
// A block brings its entries to shared memory. A row is shared by LANES neighbouring lanes, each of which has COLUMNS columns, V side by side.
// Rows that follow each other often meet the same rows of B, which the first-level cache has then.
#pragma once

#include "sparse_tiles.cuh"

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

// Adds the terms of N entries from e on, with their rows of B on their way at a time, and with LOOKS looks at these entries.
template <int N, bool LOOKS, class F, class C, int COLUMNS>
__device__ __forceinline__ void add_rows(const Sparse<typename F::S>& product, const Arrays<F>& entries, Seen<F>& seen, typename F::Sum (&sums)[COLUMNS], const typename F::S::Pointers& right, const C& mine, int e) {
  using S = typename F::S;
  typename F::Index k[N];
  typename S::Element entry[N], row[N][COLUMNS];
#pragma unroll
  for (int q = 0; q < N; q++) k[q] = entries.columns[e + q], entry[q] = entries.values[e + q];
#pragma unroll
  for (int q = 0; q < N; q++) mine.template get<S>(row[q], S::row(right, LOOKS ? seen.known(k[q]) : k[q], unsigned(product.right_row)));
#pragma unroll
  for (int q = 0; q < N; q++) {
    if (LOOKS) seen.take(entry[q]);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) add_term<F>(product, sums[c], entry[q], row[q][c], int(k[q]));
  }
}

// Looks at a block's share of B.
template <class F, int LANES, int COLUMNS, int V>
__device__ __forceinline__ void look_at_share(const Sparse<typename F::S>& product, const Segments<F>& own, Seen<F>& seen, Columns<LANES, COLUMNS, V> mine, int group) {
  using S = typename F::S;
  const Share share(product, own);
  for (; mine.first < mine.n; mine.first += gridDim.y * (LANES * COLUMNS))
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

// Looks at the entries of a block; a column that does not exist is replaced by the first one.
template <class F> __device__ __forceinline__ void look_at_entries(const Segments<F>& own, const Arrays<F>& entries, Seen<F>& seen) {
#pragma unroll 4
  for (int e = threadIdx.x; e < own.entries; e += blockDim.x) {
    if (!seen.known.has(entries.columns[e])) entries.columns[e] = 0;
    seen.take(entries.values[e]);
  }
}

// A x B for a matrix B. Lanes that have a row for themselves look at its entries while they multiply them; others would do so LANES times.
template <class F, int LANES, int COLUMNS, int V> __device__ __forceinline__ void multiply_matrix(const Sparse<typename F::S>& product) {
  using S = typename F::S;
  using Sum = typename F::Sum;
  using E = typename S::Element;
  constexpr bool LOOKS = LANES == 1;
  constexpr int N = sizeof(E) * COLUMNS > 20 ? 2 : LOOKS ? 6 : 4;
  const Segments<F> own(product, blockIdx.x);
  const Arrays<F> entries(product, own);
  const int groups = blockDim.x / LANES, n = int(product.n);
  const int group = threadIdx.x < groups * LANES ? threadIdx.x / LANES : 1 << 30;  // none for the threads that are left over
  Columns<LANES, COLUMNS, V> mine{int(blockIdx.y) * LANES * COLUMNS + int(threadIdx.x) % LANES * V, n};
  Seen<F> seen(product);
  seen.known.strange = own.strange(product);
  int e = own.begin(group), end = own.end(group);
  if constexpr (F::CHECKED) look_at_share<F>(product, own, seen, mine, group);
  entries.wait();
  if constexpr (!LOOKS) {
    look_at_entries<F>(own, entries, seen), seen.tell(product);
    __syncthreads();
  }
  for (; mine.first < n; mine.first += gridDim.y * (LANES * COLUMNS)) {
    typename S::Pointers right = product.right;
    S::advance(right, mine.first), S::keep(right);
    for (int s = group; s < own.count; s += groups) {
      Sum sums[COLUMNS];
#pragma unroll 1
      for (; e + N <= end; e += N) add_rows<N, LOOKS, F>(product, entries, seen, sums, right, mine, e);
#pragma unroll 1
      for (; N > 2 && e + 2 <= end; e += 2) add_rows<2, LOOKS, F>(product, entries, seen, sums, right, mine, e);
      if (e < end) add_rows<1, LOOKS, F>(product, entries, seen, sums, right, mine, e);
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
  if constexpr (LOOKS) seen.tell(product);
}
