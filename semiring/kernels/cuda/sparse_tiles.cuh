// Tiles of compressed rows: their limits, and a thread block's rows, columns and sums.
//
// Rows and entries together are cut into tiles of equal size (Merrill and Garland 2016, merge-based parallel sparse matrix-vector
// multiplication), so that all thread blocks have equal work for any lengths of rows.
//
// S is the semiring as `summing_source` writes it, and Index the type of column numbers.
#pragma once

#include "bounds.cuh"
#include "sums.cuh"

template <class S> struct Sparse { SPARSE_FIELDS };

// The form of a product: SWAPPED makes entries the right factors, CHECKED checks numbers, and MIXED is that of `Staged`.
template <class S_, class Sum_, class Index_, bool SWAPPED_, bool CHECKED_, bool MIXED_> struct Form {
  using S = S_;
  using Sum = Sum_;
  using Index = Index_;
  static constexpr bool SWAPPED = SWAPPED_, CHECKED = CHECKED_, MIXED = MIXED_;
};

// cuts <- the first row and entry of each tile. A row of r entries counts r + 1, with the 1 at the end.
template <class S, class Index> __device__ __forceinline__ void cut(const Sparse<S>& product) {
  const Index* const starts = static_cast<const Index*>(product.starts);
  const long long number = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (number > product.tiles) return;
  const long long place = min(number * product.items, product.m + product.entries);
  // Interpolates from the last row that was tried; after eight steps, bisects.
  const double rows_a_place = double(product.m) / double(product.m + product.entries);
  long long low = 0, high = product.m, next = static_cast<long long>(place * rows_a_place);
  for (int step = 0; low < high; step++) {
    const long long row = step < 8 ? min(max(next, low), high - 1) : (low + high) / 2, end = row + 1 + starts[row + 1];
    if (end <= place)
      low = row + 1;
    else
      high = row;
    next = row + static_cast<long long>((place - end) * rows_a_place) + (end <= place);
  }
  long long entry = place - low;
  if (low < product.m && starts[low + 1] - starts[low] <= product.longest) entry = starts[low];
  product.cuts[2 * number] = low, product.cuts[2 * number + 1] = min(max(entry, 0ll), product.entries);
}

// A thread block's rows, first_row to last_row, and `entries` from the first one on. The block with a row's last entry ends the row.
template <class F> struct Segments {
  using Index = typename F::Index;
  const Index* starts;
  long long tile, first_row, last_row;
  Index first;
  int entries, count;

  __device__ __forceinline__ Segments(const Sparse<typename F::S>& product, long long tile) : tile(tile) {
    const long long* const cuts = product.cuts + 2 * tile;
    first_row = cuts[0], first = Index(cuts[1]), last_row = cuts[2];
    starts = static_cast<const Index*>(product.starts) + first_row;
    entries = int(min(max(cuts[3] - cuts[1], 0ll), product.items + product.longest));
    const bool goes_on = last_row < product.m && entries > starts[last_row - first_row] - first;
    count = int(min(max(last_row - first_row, 0ll), product.items)) + goes_on;
    if (product.depth == 0) entries = 0;
  }
  // Returns true if this thread finds invalid rows. If each block's rows are sound, and follow the previous block's, all rows are sound.
  __device__ __forceinline__ bool strange(const Sparse<typename F::S>& product) const {
    const long long rows = last_row - first_row;
    bool found = rows < 0 || rows > product.items;
    if (tile == 0) found |= first_row != 0 || starts[0] != 0;
    if (tile == product.tiles - 1) found |= last_row != product.m || starts[rows] != product.entries;
    for (int s = threadIdx.x; s < min(rows, product.items); s += blockDim.x) found |= starts[s] > starts[s + 1];
    return found;
  }
  // The entries of a segment, relative to the block's first entry.
  __device__ __forceinline__ int place(Index entry) const { return int(min(max(entry - first, Index(0)), Index(entries))); }
  __device__ __forceinline__ int begin(int s) const { return s == 0 ? 0 : s < count ? place(starts[s]) : entries; }
  __device__ __forceinline__ int end(int s) const { return s < count && ends(s) ? place(starts[s + 1]) : entries; }
  // Return true for the first part, and for the last part, of a row.
  __device__ __forceinline__ bool begins(int s) const { return s > 0 || first == starts[0]; }
  __device__ __forceinline__ bool ends(int s) const { return first_row + s < last_row; }
};

// Adds the product of an entry in column k and an element of B.
template <class F, class E> __device__ __forceinline__ void add_term(const Sparse<typename F::S>& product, typename F::Sum& sum, const E& entry, const E& other, int k) {
  using S = typename F::S;
  const E left = S::encode(F::SWAPPED ? other : entry), right = S::encode(F::SWAPPED ? entry : other);
  sum.template add<1>(&left, &right, k, product.threshold);
}

// Returns the place for the sum of part of a row: the row that ends in tile t, or the row that goes on.
template <class F> __device__ __forceinline__ typename F::Sum& part_of(const Sparse<typename F::S>& product, long long t, bool goes_on, long long column) {
  return static_cast<typename F::Sum*>(product.parts)[(2 * t + goes_on) * product.n + column];
}

extern __shared__ __align__(128) char shared_memory[];

// The entries of a tile in shared memory, columns and values separately.
template <class F> struct Arrays {
  using S = typename F::S;
  using Index = typename F::Index;
  char* shared;
  Staged<Index, F::MIXED> columns;
  typename S::template Tile<F::MIXED> values;

  __device__ __forceinline__ Arrays(const Sparse<S>& product, const Segments<F>& own)
      : shared(shared_memory),
        columns(shared, static_cast<const Index*>(product.columns) + own.first, own.entries, int(product.items + product.longest)),
        values(shared, product.values, own.first, own.entries, int(product.items + product.longest)) {
    commit_copies();
  }
  static __device__ __forceinline__ void wait() {
    wait_for_copies<0>();
    __syncthreads();
  }
};

// Checks that columns exist; as unsigned numbers, negative columns are large.
__device__ __forceinline__ unsigned without_sign(int x) { return x; }
__device__ __forceinline__ unsigned long long without_sign(long long x) { return x; }
template <class Index> struct Known {
  using Number = decltype(without_sign(Index()));
  Number depth;
  bool strange = false;
  __device__ __forceinline__ explicit Known(unsigned long long depth) : depth(min(depth, (Number(-1) >> 1) + 1ull)) {}
  __device__ __forceinline__ bool has(Index column) {
    const bool there = without_sign(column) < depth;
    strange |= !there;
    return there;
  }
  __device__ __forceinline__ Index operator()(Index column) { return has(column) ? column : 0; }
};

// The rows of B that a block checks: in a square matrix the rows with the numbers of the block's own rows, which products often need too,
// otherwise an equal share.
struct Share {
  long long first, last;
  template <class F> __device__ __forceinline__ Share(const Sparse<typename F::S>& product, const Segments<F>& own) {
    if (product.m == product.depth) {
      first = max(own.first_row, 0ll), last = min(own.last_row, product.depth);
    } else {
      const long long each = (product.depth + product.tiles - 1) / product.tiles;
      first = own.tile * each, last = min(first + each, product.depth);
    }
  }
};

// Findings of a thread that make a product invalid.
template <class F> struct Seen {
  Within<typename F::S> numbers;
  Known<typename F::Index> known;
  __device__ __forceinline__ explicit Seen(const Sparse<typename F::S>& product) : numbers(product.bounds), known(product.depth) {}
  __device__ __forceinline__ void take(const typename F::S::Element& x) {
    if constexpr (F::CHECKED) numbers.take(x);
  }
  __device__ __forceinline__ void tell(const Sparse<typename F::S>& product) const {
    if constexpr (F::CHECKED) numbers.tell();
    if (known.strange) *product.strange = 1;
  }
};

// Returns the element of C for a sum; `via` becomes the column that won, or -1 where C keeps its element.
template <class F> __device__ __forceinline__ auto settled(const Sparse<typename F::S>& product, const typename F::Sum& sum, long long at) -> typename F::S::Element {
  using S = typename F::S;
  typename S::Element x = S::decode(sum.result(), product.threshold);
  bool kept = false;
  if (!product.fresh) {
    const typename S::Element old = S::get(product.out, at), found = S::add(old, x);
    if constexpr (F::CHECKED) {
      Within<S> numbers(product.bounds);
      numbers.take(old), numbers.tell();
    }
    kept = S::same(found, old), x = found;
  }
  if constexpr (F::Sum::SELECTS) product.via[at] = kept ? -1 : sum.winner;
  return x;
}
