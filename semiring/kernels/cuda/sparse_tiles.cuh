// Tiles of a sparse matrix, by compressed rows: where they are cut, and what a thread block has of rows, columns and sums.
//
// Rows and entries together are cut into tiles of about as many (Merrill and Garland 2016, merge-based parallel sparse matrix-vector
// multiplication), so that each thread block has as much to do however long rows are.
//
// S is the semiring as `summing_source` writes it, and Index what numbers of columns are.
#pragma once

#include "bounds.cuh"
#include "sums.cuh"

// Its fields are those of the class of its name in arguments.py.
template <class S> struct Sparse {
  SPARSE_FIELDS
};

// How a product is taken: SWAPPED if an entry is the right factor of a term, CHECKED if numbers are looked at, and MIXED as of `Staged`.
template <class S_, class Sum_, class Index_, bool SWAPPED_, bool CHECKED_, bool MIXED_> struct Form {
  using S = S_;
  using Sum = Sum_;
  using Index = Index_;
  static constexpr bool SWAPPED = SWAPPED_, CHECKED = CHECKED_, MIXED = MIXED_;
};

// Where each tile begins: the row, and the entry. A row counts one beside its entries, once it has ended.
template <class S, class Index> __device__ __forceinline__ void cut(const Sparse<S>& product) {
  const Index* const starts = static_cast<const Index*>(product.starts);
  const long long number = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (number > product.tiles) return;
  const long long place = min(number * product.items, product.m + product.entries);
  // Where it would be if all rows from the last one that was looked at were alike; after eight such steps in the middle of what is left.
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

// What a thread block has: the rows from first_row to last_row, of `entries` from the first one. Whoever has the last one of a row ends it.
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
  // Whether this thread meets rows that are none: what all blocks find is sound if the rows of each are, and follow those of the one before.
  __device__ __forceinline__ bool strange(const Sparse<typename F::S>& product) const {
    const long long rows = last_row - first_row;
    bool found = rows < 0 || rows > product.items;
    if (tile == 0) found |= first_row != 0 || starts[0] != 0;
    if (tile == product.tiles - 1) found |= last_row != product.m || starts[rows] != product.entries;
    for (int s = threadIdx.x; s < min(rows, product.items); s += blockDim.x) found |= starts[s] > starts[s + 1];
    return found;
  }
  // The entries of a segment, from the first one of the block on.
  __device__ __forceinline__ int place(Index entry) const { return int(min(max(entry - first, Index(0)), Index(entries))); }
  __device__ __forceinline__ int begin(int s) const { return s == 0 ? 0 : s < count ? place(starts[s]) : entries; }
  __device__ __forceinline__ int end(int s) const { return s < count && ends(s) ? place(starts[s + 1]) : entries; }
  // Whether it is the first part of a row, and whether it is the last.
  __device__ __forceinline__ bool begins(int s) const { return s > 0 || first == starts[0]; }
  __device__ __forceinline__ bool ends(int s) const { return first_row + s < last_row; }
};

// Adds the product of the entry of column k and an element of B.
template <class F, class E> __device__ __forceinline__ void add_term(const Sparse<typename F::S>& product, typename F::Sum& sum, const E& entry, const E& other, int k) {
  using S = typename F::S;
  const E left = S::encode(F::SWAPPED ? other : entry), right = S::encode(F::SWAPPED ? entry : other);
  sum.template add<1>(&left, &right, k, product.threshold);
}

// Where the sum of a part of a row goes: of tile t the one that ends there, or the one that goes on.
template <class F> __device__ __forceinline__ typename F::Sum& part_of(const Sparse<typename F::S>& product, long long t, bool goes_on, long long column) {
  return static_cast<typename F::Sum*>(product.parts)[(2 * t + goes_on) * product.n + column];
}

extern __shared__ __align__(128) char shared_memory[];

// The entries of a tile in shared memory, columns and values apart.
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

// Whether a column is there; numbers below 0 are large without a sign.
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

// The rows of B that a block looks at: of a square matrix those with the numbers of its own rows, which it often multiplies too, else each block
// as many.
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

// What a thread has seen that makes a product void.
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

// The element of C that a sum makes; `via` has the column that won, or -1 where that is what C had.
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
