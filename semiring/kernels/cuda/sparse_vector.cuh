// Compressed rows times a vector.
//
// A block brings its entries to shared memory. A row is shared by LANES neighbouring lanes, which take its entries by turns: neighbouring
// rows of a mesh have neighbouring columns, so that what a warp reads of the vector lies side by side.
#pragma once

#include "sparse_tiles.cuh"

constexpr int LONG = 64;  // entries of a lane from which on a row is the whole warp's

// Adds entries of a row from e on, of which this lane has every PARTS-th one: N of them, or with SOME those before the end.
template <class F, int PARTS, int N, bool SOME>
__device__ __forceinline__ void add_terms(const Sparse<typename F::S>& product, const Arrays<F>& entries, Seen<F>& seen, typename F::Sum& sum, int e, int end) {
  using S = typename F::S;
  using E = typename S::Element;
  typename F::Index k[N];
  E entry[N], other[N];
#pragma unroll
  for (int q = 0; q < N; q++)
    if (!SOME || e + q * PARTS < end) k[q] = seen.known(entries.columns[e + q * PARTS]), entry[q] = entries.values[e + q * PARTS];
#pragma unroll
  for (int q = 0; q < N; q++)
    if (!SOME || e + q * PARTS < end) other[q] = S::get(product.right, k[q]);
#pragma unroll
  for (int q = 0; q < N; q++)
    if (!SOME || e + q * PARTS < end) seen.take(entry[q]), add_term<F>(product, sum, entry[q], other[q], int(k[q]));
}

template <class F, int PARTS>
__device__ __forceinline__ void sum_row(const Sparse<typename F::S>& product, const Arrays<F>& entries, Seen<F>& seen, typename F::Sum& sum, int e, int end) {
  constexpr int N = sizeof(typename F::S::Element) <= 8 ? 8 : 4;  // elements of B that are on their way at a time
#pragma unroll 1
  for (; e + (N - 1) * PARTS < end; e += N * PARTS) add_terms<F, PARTS, N, false>(product, entries, seen, sum, e, end);
  if (e < end) add_terms<F, PARTS, N, true>(product, entries, seen, sum, e, end);
}

// A x B for a column B, whose elements are side by side.
template <class F, int LANES> __device__ __forceinline__ void multiply_vector(const Sparse<typename F::S>& product) {
  using S = typename F::S;
  using Sum = typename F::Sum;
  const Segments<F> own(product, blockIdx.x);
  const Arrays<F> entries(product, own);
  Seen<F> seen(product);
  seen.known.strange = own.strange(product);
  const int groups = blockDim.x / LANES, group = threadIdx.x / LANES, part = threadIdx.x % LANES, lane = threadIdx.x % 32;
  int begin = own.begin(group), end = own.end(group);
  if constexpr (F::CHECKED) {
    const Share share(product, own);
    for (long long k = share.first + threadIdx.x; k < share.last; k += blockDim.x) seen.take(S::get(product.right, k));
  }
  entries.wait();
  for (int first = 0; first < own.count; first += groups) {
    const int s = first + group;
    const bool alone = end - begin <= LONG * LANES || LANES == 32;
    Sum sum;
    if (alone) sum_row<F, LANES>(product, entries, seen, sum, begin + part, end);
    sum.template combine_turns<LANES>(part);
    if constexpr (LANES < 32) {
      for (unsigned left = __ballot_sync(0xffffffff, !alone && part == 0); left; left &= left - 1) {
        const int source = __ffs(left) - 1;
        const int from = __shfl_sync(0xffffffff, begin, source), to = __shfl_sync(0xffffffff, end, source);
        Sum whole;
        sum_row<F, 32>(product, entries, seen, whole, from + lane, to);
        whole.template combine_turns<32>(lane);
        if (lane / LANES == source / LANES) sum = whole;
      }
    }
    if (s < own.count && part == 0) {
      const long long row = own.first_row + s;
      if (own.begins(s) && own.ends(s))
        S::put(product.out, row, settled<F>(product, sum, row));
      else
        part_of<F>(product, own.tile, !own.ends(s), 0) = sum;
    }
    begin = own.begin(s + groups), end = own.end(s + groups);
  }
  if (threadIdx.x == 0) product.closed[own.tile] = own.last_row > own.first_row && !own.begins(0);
  seen.tell(product);
}
