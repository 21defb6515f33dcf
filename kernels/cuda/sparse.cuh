// Products of a sparse matrix, by compressed rows, and a dense one: C_i = C_i + sum over the entries a_ik of row i of a_ik x B_k.
//
// Rows and entries together are cut into tiles of about as many (Merrill and Garland 2016, merge-based parallel sparse matrix-vector
// multiplication), so that each thread block has as much to do however long rows are. A launch has three phases: where tiles are cut is
// looked up, tiles are multiplied, and the sums of rows that were cut are joined.
//
// A block brings its entries to shared memory, and looks at their columns (and numbers) there. Then a row is shared by LANES neighbouring
// lanes. Times a vector they take its entries by turns; neighbouring rows of a mesh have neighbouring columns, so that what a warp reads of
// the vector lies side by side. Times a matrix each lane has COLUMNS columns, side by side as one vector where VECTORS says so; rows that
// follow each other often meet the same rows of B, which the first-level cache has then.
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

// How a product is taken: SWAPPED if an entry is the right factor of a term.
template <class S_, class Sum_, class Index_, bool SWAPPED_, bool CHECKED_> struct Form {
  using S = S_;
  using Sum = Sum_;
  using Index = Index_;
  static constexpr bool SWAPPED = SWAPPED_, CHECKED = CHECKED_;
};

// Where tile `number` begins: the row, and the entry. Of the first rows, so many as are over, each counts one beside its entries.
template <class S, class Index> __device__ __forceinline__ void cut(const Sparse<S>& product, long long number) {
  const Index* const starts = static_cast<const Index*>(product.starts);
  const long long place = min(number * product.items, product.m + product.entries);
  long long low = 0, high = product.m;
  while (low < high) {
    const long long row = (low + high) / 2;
    if (row + 1 + starts[row + 1] <= place)
      low = row + 1;
    else
      high = row;
  }
  long long entry = place - low;
  if (low < product.m && starts[low + 1] - starts[low] <= product.longest) entry = starts[low];
  product.cuts[2 * number] = low, product.cuts[2 * number + 1] = min(max(entry, 0ll), product.entries);
}

// Cuts all tiles, and looks at the rows.
template <class S, class Index> __device__ __forceinline__ void cut_tiles(const Sparse<S>& product) {
  const Index* const starts = static_cast<const Index*>(product.starts);
  const long long number = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x, threads = gridDim.x * static_cast<long long>(blockDim.x);
  bool strange = number == 0 && (starts[0] != 0 || starts[product.m] != product.entries);
  for (long long i = number; i < product.m; i += threads) strange |= starts[i] > starts[i + 1];
  for (long long t = number; t <= product.tiles; t += threads) cut<S, Index>(product, t);
  if (strange) *product.strange = 1;
}

// What a thread block has: the rows from first_row to last_row, of the entries from first to last. Whoever has the last one of a row ends it.
template <class F> struct Segments {
  using Index = typename F::Index;
  const Index* starts;
  long long first_row, last_row, first, last, count;

  __device__ __forceinline__ explicit Segments(const Sparse<typename F::S>& product) : starts(static_cast<const Index*>(product.starts)) {
    const long long* const cuts = product.cuts + 2 * static_cast<long long>(blockIdx.x);
    first_row = cuts[0], first = cuts[1], last_row = cuts[2];
    last = min(max(cuts[3], first), first + product.items + product.longest);
    if (product.depth == 0) last = first;
    count = last_row - first_row + (last_row < product.m && last > starts[last_row]);
  }
  __device__ __forceinline__ long long begin(long long s) const { return s == 0 ? first : min(max(starts[first_row + s], Index(first)), Index(last)); }
  __device__ __forceinline__ long long end(long long s) const {
    return first_row + s < last_row ? min(max(starts[first_row + s + 1], Index(first)), Index(last)) : last;
  }
  // Whether it is the first part of a row, and whether it is the last.
  __device__ __forceinline__ bool begins(long long s) const { return s > 0 || first == starts[first_row]; }
  __device__ __forceinline__ bool ends(long long s) const { return first_row + s < last_row; }
};

// Adds the product of the entry of column k and an element of B.
template <class F, class E> __device__ __forceinline__ void add_term(const Sparse<typename F::S>& product, typename F::Sum& sum, const E& entry, const E& other, int k) {
  using S = typename F::S;
  const E left = S::encode(F::SWAPPED ? other : entry), right = S::encode(F::SWAPPED ? entry : other);
  sum.template add<1>(&left, &right, k, product.threshold);
}

// The element of C that a sum makes; `via` has the column that won, or -1 where that is what C had.
template <class F> __device__ __forceinline__ auto settled(const Sparse<typename F::S>& product, const typename F::Sum& sum, long long at, Within<typename F::S>& check) -> typename F::S::Element {
  using S = typename F::S;
  typename S::Element x = S::decode(sum.result(), product.threshold);
  bool kept = false;
  if (!product.fresh) {
    const typename S::Element old = S::get(product.out, at), found = S::add(old, x);
    if constexpr (F::CHECKED) check.take(old);
    kept = S::same(found, old), x = found;
  }
  if constexpr (F::Sum::SELECTS) product.via[at] = kept ? -1 : sum.winner;
  return x;
}

// Where the sum of a part of a row goes: of tile t the one that ends there, or the one that goes on.
template <class F> __device__ __forceinline__ typename F::Sum& part_of(const Sparse<typename F::S>& product, long long t, bool goes_on, long long column) {
  return static_cast<typename F::Sum*>(product.parts)[(2 * t + goes_on) * product.n + column];
}

// The entries of a tile in shared memory.
template <class F> struct Entries {
  using S = typename F::S;
  using Index = typename F::Index;
  char* shared;
  Staged<Index> columns;
  typename S::Tile values;

  __device__ __forceinline__ Entries(const Sparse<S>& product, const Segments<F>& own, char* memory, int count, int room)
      : shared(memory), columns(shared, static_cast<const Index*>(product.columns) + own.first, count, room, unsigned(product.mixing)),
        values(shared, product.values, own.first, count, room, unsigned(product.mixing)) {}

  // Waits for them, and looks at them. Those in a column that there is not are left with the first one.
  __device__ __forceinline__ void look(const Sparse<S>& product, int count, Within<S>& check) {
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    bool strange = false;
    for (int e = threadIdx.x; e < count; e += blockDim.x) {
      if (columns[e] < 0 || columns[e] >= product.depth) strange = true, columns[e] = 0;
      if constexpr (F::CHECKED) check.take(values[e]);
    }
    if (strange) *product.strange = 1;
    __syncthreads();
  }
};

// The rows of B that a block looks at: each block as many.
struct Share {
  long long first, last;
  template <class S> __device__ __forceinline__ explicit Share(const Sparse<S>& product) {
    const long long each = (product.depth + product.tiles - 1) / product.tiles;
    first = blockIdx.x * each, last = min(first + each, product.depth);
  }
};

extern __shared__ __align__(128) char shared_memory[];

// Sums the entries of a row from e to end, of which this lane has every PARTS-th one.
template <class F, int PARTS> __device__ __forceinline__ void sum_row(const Sparse<typename F::S>& product, const Entries<F>& entries, typename F::Sum& sum, int e, int end) {
  using S = typename F::S;
  using E = typename S::Element;
  constexpr int TOGETHER = sizeof(E) <= 8 ? 8 : 4;  // elements of B that are on their way at a time
#pragma unroll 1
  for (; e < end; e += PARTS * TOGETHER) {
    typename F::Index k[TOGETHER];
    E other[TOGETHER];
#pragma unroll
    for (int q = 0; q < TOGETHER; q++) {
      if (e + q * PARTS < end) {
        k[q] = entries.columns[e + q * PARTS];
        other[q] = S::get(product.right, k[q] * product.right_row);
      }
    }
#pragma unroll
    for (int q = 0; q < TOGETHER; q++) {
      if (e + q * PARTS < end) add_term<F>(product, sum, entries.values[e + q * PARTS], other[q], int(k[q]));
    }
  }
}

template <class F, int LANES> __device__ __forceinline__ void multiply_vector(const Sparse<typename F::S>& product) {
  using S = typename F::S;
  using Sum = typename F::Sum;
  const Segments<F> own(product);
  const int count = int(own.last - own.first);
  Entries<F> entries(product, own, shared_memory, count, int(product.items + product.longest));
  Within<S> check(product.bounds);
  if constexpr (F::CHECKED) {
    const Share share(product);
    for (long long k = share.first + threadIdx.x; k < share.last; k += blockDim.x) check.take(S::get(product.right, k * product.right_row));
  }
  entries.look(product, count, check);
  const int groups = blockDim.x / LANES, group = threadIdx.x / LANES, part = threadIdx.x % LANES;
  for (long long s0 = 0; s0 < own.count; s0 += groups) {
    const long long s = s0 + group;
    const bool there = s < own.count;
    const int begin = there ? int(own.begin(s) - own.first) : 0, end = there ? int(own.end(s) - own.first) : 0;
    const bool alone = end - begin <= LONG * LANES || LANES == 32;
    Sum sum;
    sum_row<F, LANES>(product, entries, sum, begin + part, alone ? end : begin);
    sum.template combine_turns<LANES>(part);
    if constexpr (LANES < 32) {
      const int lane = threadIdx.x % 32;
      unsigned left = __ballot_sync(0xffffffff, !alone && part == 0);
      while (left) {
        const int source = __ffs(left) - 1;
        left &= left - 1;
        const int from = __shfl_sync(0xffffffff, begin, source), to = __shfl_sync(0xffffffff, end, source);
        Sum whole;
        sum_row<F, 32>(product, entries, whole, from + lane, to);
        whole.template combine_turns<32>(lane);
        if (lane / LANES == source / LANES) sum = whole;
      }
    }
    if (!there || part != 0) continue;
    if (own.begins(s) && own.ends(s))
      S::put(product.out, own.first_row + s, settled<F>(product, sum, own.first_row + s, check));
    else
      part_of<F>(product, blockIdx.x, !own.ends(s), 0) = sum;
  }
  if (threadIdx.x == 0) product.closed[blockIdx.x] = own.last_row > own.first_row && !own.begins(0);
  if constexpr (F::CHECKED) check.tell();
}

template <class F, int LANES, int COLUMNS, bool VECTORS> __device__ __forceinline__ void multiply_matrix(const Sparse<typename F::S>& product) {
  using S = typename F::S;
  using Sum = typename F::Sum;
  using E = typename S::Element;
  constexpr int TOGETHER = sizeof(E) * COLUMNS <= 16 ? 4 : 2;
  constexpr int APART = VECTORS ? 1 : LANES;  // from a lane's column to its next one
  const Segments<F> own(product);
  const int count = int(own.last - own.first);
  Entries<F> entries(product, own, shared_memory, count, int(product.items + product.longest));
  Within<S> check(product.bounds);
  const int groups = blockDim.x / LANES, group = threadIdx.x / LANES;
  const int first_column = threadIdx.x % LANES * (VECTORS ? COLUMNS : 1);
  const auto row_of = [&](Vector<E, COLUMNS>& row, long long k, long long j) {
    const long long at = k * product.right_row + j;
    if constexpr (VECTORS) {
      row = S::get_vector(product.right, at);
    } else {
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) row.element[c] = j + c * APART < product.n ? S::get(product.right, at + c * APART) : S::zero();
    }
  };
  if constexpr (F::CHECKED) {
    const Share share(product);
    for (long long k = share.first + group; k < share.last; k += groups)
      for (long long j = first_column; j < product.n; j += LANES * COLUMNS) {
        Vector<E, COLUMNS> row;
        row_of(row, k, j);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
          if (VECTORS || j + c * APART < product.n) check.take(row.element[c]);
      }
  }
  entries.look(product, count, check);
  for (long long j = first_column; j < product.n; j += LANES * COLUMNS)
    for (long long s = group; s < own.count; s += groups) {
      const int end = int(own.end(s) - own.first);
      Sum sums[COLUMNS];
#pragma unroll 1
      for (int e = int(own.begin(s) - own.first); e < end; e += TOGETHER) {
        typename F::Index k[TOGETHER];
        Vector<E, COLUMNS> other[TOGETHER];
#pragma unroll
        for (int q = 0; q < TOGETHER; q++) {
          if (e + q < end) {
            k[q] = entries.columns[e + q];
            row_of(other[q], k[q], j);
          }
        }
#pragma unroll
        for (int q = 0; q < TOGETHER; q++) {
          if (e + q >= end) break;
          const E entry = entries.values[e + q];
#pragma unroll
          for (int c = 0; c < COLUMNS; c++) add_term<F>(product, sums[c], entry, other[q].element[c], int(k[q]));
        }
      }
      if (own.begins(s) && own.ends(s)) {
        const long long at = (own.first_row + s) * product.n + j;
        Vector<E, COLUMNS> found;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
          if (VECTORS || j + c * APART < product.n) found.element[c] = settled<F>(product, sums[c], at + c * APART, check);
        if constexpr (VECTORS) {
          S::put_vector(product.out, at, found);
        } else {
#pragma unroll
          for (int c = 0; c < COLUMNS; c++)
            if (j + c * APART < product.n) S::put(product.out, at + c * APART, found.element[c]);
        }
      } else {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
          if (VECTORS || j + c * APART < product.n) part_of<F>(product, blockIdx.x, !own.ends(s), j + c * APART) = sums[c];
      }
    }
  if (threadIdx.x == 0) product.closed[blockIdx.x] = own.last_row > own.first_row && !own.begins(0);
  if constexpr (F::CHECKED) check.tell();
}

// One element of the row that tile t ends: C <- C + the parts that go on, from the tile in which the row begins, and the last one.
template <class F> __device__ __forceinline__ void join_parts(const Sparse<typename F::S>& product, long long t, long long column, Within<typename F::S>& check) {
  const auto* const starts = static_cast<const typename F::Index*>(product.starts);
  const long long row = product.cuts[2 * t], begin = min(max((row + starts[row]) / product.items, 0ll), t), at = row * product.n + column;
  typename F::Sum sum = part_of<F>(product, begin, true, column);
#pragma unroll 4
  for (long long i = begin + 1; i < t; i++) sum.join(part_of<F>(product, i, true, column));
  sum.join(part_of<F>(product, t, false, column));
  F::S::put(product.out, at, settled<F>(product, sum, at, check));
}

// All of them: a warp looks at 32 tiles, of which with a vector a lane has one, and with a matrix all lanes have each.
template <class F> __device__ __forceinline__ void join(const Sparse<typename F::S>& product) {
  const long long t = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x, lane = threadIdx.x % 32;
  const bool closed = t < product.tiles && product.closed[t];
  Within<typename F::S> check(product.bounds);
  if (product.n == 1) {
    if (closed) join_parts<F>(product, t, 0, check);
  } else {
    for (unsigned left = __ballot_sync(0xffffffff, closed); left; left &= left - 1)
      for (long long j = lane; j < product.n; j += 32) join_parts<F>(product, t - lane + __ffs(left) - 1, j, check);
  }
  if constexpr (F::CHECKED) check.tell();
}

template <class F, int LANES, int COLUMNS, bool VECTORS, bool MATRIX> __device__ __forceinline__ void sparse_product(const Sparse<typename F::S>& product) {
  if (product.phase == CUT)
    cut_tiles<typename F::S, typename F::Index>(product);
  else if (product.phase == JOIN)
    join<F>(product);
  else if constexpr (MATRIX)
    multiply_matrix<F, LANES, COLUMNS, VECTORS>(product);
  else
    multiply_vector<F, LANES>(product);
}
