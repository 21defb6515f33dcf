// Products of a sparse matrix, by compressed rows, and a dense one: C_i = C_i + sum over the entries a_ik of row i of a_ik x B_k.
//
// Rows and entries together are cut into tiles of about as many (Merrill and Garland 2016, merge-based parallel sparse matrix-vector
// multiplication), so that each thread block has as much to do however long rows are. A launch has three phases: where tiles are cut is
// looked up, tiles are multiplied, and the sums of rows that were cut are joined.
//
// A block brings its entries to shared memory, and looks at their columns (and numbers) there. Then a row is shared by LANES neighbouring
// lanes. Times a vector they take its entries by turns; neighbouring rows of a mesh have neighbouring columns, so that what a warp reads of
// the vector lies side by side. Times a matrix each lane has COLUMNS columns, V side by side; rows that follow each other often meet the
// same rows of B, which the first-level cache has then.
//
// S is the semiring as `summing_source` writes it, and Index what numbers of columns are.
#pragma once

#include "bounds.cuh"
#include "sums.cuh"

// Its fields are those of the class of its name in arguments.py.
template <class S> struct Sparse {
  SPARSE_FIELDS
};

enum Phase { CUT, MULTIPLY, JOIN };

constexpr int LONG = 64;  // entries of a lane from which on a row is the whole warp's

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
  // First where it would be if all rows were alike, then farther and farther from there.
  long long low = 0, high = product.m, apart = 16;
  long long next = static_cast<long long>(double(place) * product.m / (product.m + product.entries));
  while (low < high) {
    const long long row = next >= low && next < high ? next : (low + high) / 2;
    if (row + 1 + starts[row + 1] <= place)
      low = row + 1, next = low + apart;
    else
      high = row, next = high - apart;
    apart = min(4 * apart, product.m);
  }
  long long entry = place - low;
  if (low < product.m && starts[low + 1] - starts[low] <= product.longest) entry = starts[low];
  product.cuts[2 * number] = low, product.cuts[2 * number + 1] = min(max(entry, 0ll), product.entries);
}

// What a thread block has: the rows from first_row to last_row, of `entries` from the first one. Whoever has the last one of a row ends it.
template <class F> struct Segments {
  using Index = typename F::Index;
  const Index* starts;
  long long tile, first_row, last_row, first;
  int entries, count;

  __device__ __forceinline__ Segments(const Sparse<typename F::S>& product, long long tile) : tile(tile) {
    const long long* const cuts = product.cuts + 2 * tile;
    first_row = cuts[0], first = cuts[1], last_row = cuts[2];
    starts = static_cast<const Index*>(product.starts) + first_row;
    entries = int(min(max(cuts[3] - first, 0ll), product.items + product.longest));
    const bool goes_on = last_row < product.m && first + entries > starts[last_row - first_row];
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
  __device__ __forceinline__ int place(long long entry) const { return int(min(max(entry - first, 0ll), static_cast<long long>(entries))); }
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

// The entries of a tile in shared memory.
template <class F> struct Entries {
  using S = typename F::S;
  using Index = typename F::Index;
  char* shared;
  Staged<Index, F::MIXED> columns;
  typename S::template Tile<F::MIXED> values;

  __device__ __forceinline__ Entries(const Sparse<S>& product, const Segments<F>& own)
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
template <class Index> struct Known {
  unsigned long long depth;
  bool strange = false;
  __device__ __forceinline__ explicit Known(long long depth) : depth(depth) {}
  __device__ __forceinline__ Index operator()(Index column) {
    const bool there = sizeof(Index) == 4 ? unsigned(column) < unsigned(min(depth, 1ull << 31)) : static_cast<unsigned long long>(column) < depth;
    strange |= !there;
    return there ? column : 0;
  }
};

// The rows of B that a block looks at: each block as many.
struct Share {
  long long first, last;
  template <class S> __device__ __forceinline__ Share(const Sparse<S>& product, long long tile) {
    const long long each = (product.depth + product.tiles - 1) / product.tiles;
    first = tile * each, last = min(first + each, product.depth);
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
template <class F> __device__ __forceinline__ auto settled(const Sparse<typename F::S>& product, const typename F::Sum& sum, long long at, Seen<F>& seen) -> typename F::S::Element {
  using S = typename F::S;
  typename S::Element x = S::decode(sum.result(), product.threshold);
  bool kept = false;
  if (!product.fresh) {
    const typename S::Element old = S::get(product.out, at), found = S::add(old, x);
    seen.take(old);
    kept = S::same(found, old), x = found;
  }
  if constexpr (F::Sum::SELECTS) product.via[at] = kept ? -1 : sum.winner;
  return x;
}

// Adds entries of a row from e on, of which this lane has every PARTS-th one: N of them, or with SOME those before the end.
template <class F, int PARTS, int N, bool SOME>
__device__ __forceinline__ void add_terms(const Sparse<typename F::S>& product, const Entries<F>& entries, Seen<F>& seen, typename F::Sum& sum, int e, int end) {
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
__device__ __forceinline__ void sum_row(const Sparse<typename F::S>& product, const Entries<F>& entries, Seen<F>& seen, typename F::Sum& sum, int e, int end) {
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
  const Entries<F> entries(product, own);
  Seen<F> seen(product);
  seen.known.strange = own.strange(product);
  const int groups = blockDim.x / LANES, group = threadIdx.x / LANES, part = threadIdx.x % LANES, lane = threadIdx.x % 32;
  int begin = own.begin(group), end = own.end(group);
  if constexpr (F::CHECKED) {
    const Share share(product, own.tile);
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
        S::put(product.out, row, settled<F>(product, sum, row, seen));
      else
        part_of<F>(product, own.tile, !own.ends(s), 0) = sum;
    }
    begin = own.begin(s + groups), end = own.end(s + groups);
  }
  if (threadIdx.x == 0) product.closed[own.tile] = own.last_row > own.first_row && !own.begins(0);
  seen.tell(product);
}

// Where a row begins, whose number is not below 0.
__device__ __forceinline__ long long row_start(int row, int apart) { return static_cast<long long>(static_cast<unsigned long long>(unsigned(row)) * unsigned(apart)); }
__device__ __forceinline__ long long row_start(long long row, long long apart) { return row * apart; }

// The columns of a lane: V side by side, and as many again beyond those of the other LANES.
template <int LANES, int COLUMNS, int V> struct Columns {
  long long first;
  __device__ __forceinline__ long long at(int c) const { return first + c / V * (LANES * V) + c % V; }

  // A row of B.
  template <class S, class E> __device__ __forceinline__ void get(E (&row)[COLUMNS], const Sparse<S>& product, const typename S::Pointers& right, long long k) const {
#pragma unroll
    for (int c = 0; c < COLUMNS; c += V) {
      const long long apart = at(c) - first;
      if constexpr (V == 1) {
        row[c] = at(c) < product.n ? S::get(right, k + apart) : S::zero();
      } else if (c == 0 || at(c) < product.n) {
        const Vector<E> found = S::get_vector(right, k + apart);
#pragma unroll
        for (int q = 0; q < V; q++) row[c + q] = found.element[q];
      }
    }
  }
  // A row of C, which begins at the element `to`.
  template <class S, class E> __device__ __forceinline__ void put(const E (&row)[COLUMNS], const Sparse<S>& product, long long to) const {
#pragma unroll
    for (int c = 0; c < COLUMNS; c += V) {
      if (at(c) >= product.n) break;
      if constexpr (V == 1) {
        S::put(product.out, to + at(c), row[c]);
      } else {
        Vector<E> some;
#pragma unroll
        for (int q = 0; q < V; q++) some.element[q] = row[c + q];
        S::put_vector(product.out, to + at(c), some);
      }
    }
  }
};

// A x B for a matrix B, with N rows of it on their way at a time.
template <class F, int LANES, int COLUMNS, int V> __device__ __forceinline__ void multiply_matrix(const Sparse<typename F::S>& product) {
  using S = typename F::S;
  using Sum = typename F::Sum;
  using E = typename S::Element;
  using Index = typename F::Index;
  constexpr int N = sizeof(E) * COLUMNS <= 16 ? 4 : 2;
  const Segments<F> own(product, blockIdx.x);
  const Entries<F> entries(product, own);
  Seen<F> seen(product);
  seen.known.strange = own.strange(product);
  const int groups = blockDim.x / LANES, group = threadIdx.x / LANES;
  const Index apart = Index(product.right_row);
  Columns<LANES, COLUMNS, V> mine{threadIdx.x % LANES * V};
  if constexpr (F::CHECKED) {
    const Share share(product, own.tile);
    for (; mine.first < product.n; mine.first += LANES * COLUMNS)
      for (long long k = share.first + group; k < share.last; k += groups) {
        E row[COLUMNS];
        mine.get(row, product, product.right, k * product.right_row + mine.first);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
          if (mine.at(c) < product.n) seen.take(row[c]);
      }
  }
  entries.wait();
#pragma unroll 4
  for (int e = threadIdx.x; e < own.entries; e += blockDim.x) {
    const Index column = entries.columns[e], known = seen.known(column);
    if (known != column) entries.columns[e] = known;
    seen.take(entries.values[e]);
  }
  __syncthreads();
  for (mine.first = threadIdx.x % LANES * V; mine.first < product.n; mine.first += LANES * COLUMNS) {
    typename S::Pointers right = product.right;
    S::advance(right, mine.first);
    for (int s = group; s < own.count; s += groups) {
      Sum sums[COLUMNS];
      const auto add = [&](int e, E(&other)[COLUMNS]) {
        const E entry = entries.values[e];
        const int k = Sum::SELECTS ? int(entries.columns[e]) : 0;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) add_term<F>(product, sums[c], entry, other[c], k);
      };
      const int end = own.end(s);
      int e = own.begin(s);
#pragma unroll 1
      for (; e + N <= end; e += N) {
        E other[N][COLUMNS];
#pragma unroll
        for (int q = 0; q < N; q++) mine.get(other[q], product, right, row_start(entries.columns[e + q], apart));
#pragma unroll
        for (int q = 0; q < N; q++) add(e + q, other[q]);
      }
      E other[N][COLUMNS];
#pragma unroll
      for (int q = 0; q < N - 1; q++)
        if (e + q < end) mine.get(other[q], product, right, row_start(entries.columns[e + q], apart));
#pragma unroll
      for (int q = 0; q < N - 1; q++)
        if (e + q < end) add(e + q, other[q]);
      if (own.begins(s) && own.ends(s)) {
        const long long to = (own.first_row + s) * product.n;
        E found[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
          if (mine.at(c) < product.n) found[c] = settled<F>(product, sums[c], to + mine.at(c), seen);
        mine.put(found, product, to);
      } else {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
          if (mine.at(c) < product.n) part_of<F>(product, own.tile, !own.ends(s), mine.at(c)) = sums[c];
      }
    }
  }
  if (threadIdx.x == 0) product.closed[own.tile] = own.last_row > own.first_row && !own.begins(0);
  seen.tell(product);
}

// One element of the row that tile t ends: C <- C + the parts that go on, from the tile in which the row begins, and the last one.
template <class F> __device__ __forceinline__ void join_parts(const Sparse<typename F::S>& product, long long t, long long column, Seen<F>& seen) {
  const auto* const starts = static_cast<const typename F::Index*>(product.starts);
  const long long row = product.cuts[2 * t], begin = min(max((row + starts[row]) / product.items, 0ll), t), at = row * product.n + column;
  typename F::Sum sum = part_of<F>(product, begin, true, column);
#pragma unroll 4
  for (long long i = begin + 1; i < t; i++) sum.join(part_of<F>(product, i, true, column));
  sum.join(part_of<F>(product, t, false, column));
  F::S::put(product.out, at, settled<F>(product, sum, at, seen));
}

// All of them: a warp looks at 32 tiles, of which with a vector a lane has one, and with a matrix all lanes have each.
template <class F> __device__ __forceinline__ void join(const Sparse<typename F::S>& product) {
  const long long t = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x, lane = threadIdx.x % 32;
  const bool closed = t < product.tiles && product.closed[t];
  Seen<F> seen(product);
  if (product.n == 1) {
    if (closed) join_parts<F>(product, t, 0, seen);
  } else {
    for (unsigned left = __ballot_sync(0xffffffff, closed); left; left &= left - 1)
      for (long long j = lane; j < product.n; j += 32) join_parts<F>(product, t - lane + __ffs(left) - 1, j, seen);
  }
  seen.tell(product);
}

template <class F, int LANES, int COLUMNS, int V, bool MATRIX> __device__ __forceinline__ void sparse_product(const Sparse<typename F::S>& product) {
  if (product.phase == CUT)
    cut<typename F::S, typename F::Index>(product);
  else if (product.phase == JOIN)
    join<F>(product);
  else if constexpr (MATRIX)
    multiply_matrix<F, LANES, COLUMNS, V>(product);
  else
    multiply_vector<F, LANES>(product);
}
