// Products of compressed rows and a dense matrix or vector: C_i = C_i + sum over the entries a_ik of row i of a_ik x B_k.
//
// A launch has three phases: the limits of tiles are looked up, tiles are multiplied, and the sums of cut rows are joined.
//
// Rows and entries together are cut into tiles of equal size (Merrill and Garland 2016, merge-based parallel sparse matrix-vector
// multiplication), so that all thread blocks have equal work for any lengths of rows.
//
// S is the semiring as `summing_structs` writes it, and Index the type of column numbers.
#pragma once

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

// Compressed rows times a matrix. A block copies its entries to shared memory. LANES neighbouring lanes share a row, with COLUMNS columns
// each, V of them adjacent. Consecutive rows often need the same rows of B, which are then in the first-level cache.

// The columns of a lane: V adjacent ones, and more beyond the columns of the other LANES.
template <int LANES, int COLUMNS, int V> struct Columns {
  int first, n;
  static __device__ __forceinline__ constexpr int apart(int c) { return c / V * (LANES * V) + c % V; }
  __device__ __forceinline__ int at(int c) const { return first + apart(c); }
  __device__ __forceinline__ bool has(int c) const { return c / V == 0 || at(c / V * V) < n; }

  // Loads elements of a row of B; `row` is the first one of this lane.
  template <class S, class E> __device__ __forceinline__ void get(E (&found)[COLUMNS], const typename S::Pointers& row) const {
#pragma unroll
    for (int c = 0; c < COLUMNS; c += V) {
      if constexpr (V == 1)
        found[c] = has(c) ? S::get(row, apart(c)) : S::zero();
      else if (has(c))
        unpack(found + c, S::get_vector(row, apart(c)));
    }
  }
  // Stores elements of a row of C, which begins at element `to`.
  template <class S, class E> __device__ __forceinline__ void put(const E (&found)[COLUMNS], const typename S::Pointers& out, long long to) const {
#pragma unroll
    for (int c = 0; c < COLUMNS; c += V) {
      if (!has(c)) break;
      if constexpr (V == 1)
        S::put(out, to + at(c), found[c]);
      else
        S::put_vector(out, to + at(c), packed(found + c));
    }
  }
};

// Adds the terms of N entries from e on, with all their rows of B in flight; LOOKS also checks these entries.
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

// Checks a block's share of B.
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

// Checks the entries of a block; a column that does not exist is replaced by the first column.
template <class F> __device__ __forceinline__ void look_at_entries(const Segments<F>& own, const Arrays<F>& entries, Seen<F>& seen) {
#pragma unroll 4
  for (int e = threadIdx.x; e < own.entries; e += blockDim.x) {
    if (!seen.known.has(entries.columns[e])) entries.columns[e] = 0;
    seen.take(entries.values[e]);
  }
}

// A x B for a matrix B. Lanes with a row each check entries while multiplying; shared rows would be checked LANES times.
template <class F, int LANES, int COLUMNS, int V> __device__ __forceinline__ void multiply_matrix(const Sparse<typename F::S>& product) {
  using S = typename F::S;
  using Sum = typename F::Sum;
  using E = typename S::Element;
  constexpr bool LOOKS = LANES == 1;
  constexpr int N = sizeof(E) * COLUMNS > 20 ? 2 : LOOKS ? 6 : 4;
  const Segments<F> own(product, blockIdx.x);
  const Arrays<F> entries(product, own);
  const int groups = blockDim.x / LANES, n = int(product.n);
  const int group = threadIdx.x < groups * LANES ? threadIdx.x / LANES : 1 << 30;  // no group for surplus threads
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

// Compressed rows times a vector. A block copies its entries to shared memory. LANES neighbouring lanes share a row, and take entries in
// turn: neighbouring rows of a mesh have neighbouring columns, so that a warp reads adjacent elements of the vector.

constexpr int LONG = 64;  // entries per lane from which on the whole warp shares a row

// Adds entries of a row from e on, every PARTS-th one for this lane: N entries, or with SOME only those before the end.
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
  constexpr int N = sizeof(typename F::S::Element) <= 8 ? 8 : 4;  // elements of B in flight
#pragma unroll 1
  for (; e + (N - 1) * PARTS < end; e += N * PARTS) add_terms<F, PARTS, N, false>(product, entries, seen, sum, e, end);
  if (e < end) add_terms<F, PARTS, N, true>(product, entries, seen, sum, e, end);
}

// A x B for a column B of contiguous elements.
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

enum Phase { CUT, MULTIPLY, JOIN };

// Computes an element of the row that ends in tile t: C + the parts from the row's first tile on.
template <class F> __device__ __forceinline__ void join_parts(const Sparse<typename F::S>& product, long long t, long long column) {
  const auto* const starts = static_cast<const typename F::Index*>(product.starts);
  const long long row = product.cuts[2 * t], begin = min(max((row + starts[row]) / product.items, 0ll), t), at = row * product.n + column;
  typename F::Sum sum = part_of<F>(product, begin, true, column);
#pragma unroll 4
  for (long long i = begin + 1; i < t; i++) sum.join(part_of<F>(product, i, true, column));
  sum.join(part_of<F>(product, t, false, column));
  F::S::put(product.out, at, settled<F>(product, sum, at));
}

// Joins all cut rows: a warp looks at 32 tiles. With a vector, each lane has one of them; with a matrix, all lanes share each.
template <class F> __device__ __forceinline__ void join(const Sparse<typename F::S>& product) {
  const long long t = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x, lane = threadIdx.x % 32;
  const bool closed = t < product.tiles && product.closed[t];
  if (product.n == 1) {
    if (closed) join_parts<F>(product, t, 0);
  } else {
    for (unsigned left = __ballot_sync(0xffffffff, closed); left; left &= left - 1)
      for (long long j = lane; j < product.n; j += 32) join_parts<F>(product, t - lane + __ffs(left) - 1, j);
  }
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
