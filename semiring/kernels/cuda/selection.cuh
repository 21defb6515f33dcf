// The k best entries of each row of a product, which is never stored. S is a semiring with a function `finish` from a sum to an entry.
#pragma once

#include "shapes.cuh"

template <class S> struct SelectK { SELECTK_FIELDS };

// An entry of a row.
template <class S> struct Entry {
  typename S::Value value;
  int column;

  // Returns true if this entry comes after another in the order of preference; NaN comes last.
  __device__ __forceinline__ bool after(const Entry& other) const {
    const auto x = value, y = other.value;
    const bool same = (x == y) | ((x != x) & (y != y)), worse = (x != x) | (S::LARGEST ? x < y : x > y);
    return same ? column > other.column : worse;
  }
};

// The best entries of a row in shared memory, a heap whose first entry is the worst. Neighbouring rows lie in neighbouring banks.
template <class S, int ROWS> struct Heap {
  static constexpr int NONE = 0x7fffffff;  // the column of a place without an entry
  Entry<S>* row;

  __device__ __forceinline__ Entry<S>& operator[](int place) const { return row[place * ROWS]; }
  __device__ __forceinline__ void clear(int size) const {
    for (int place = 0; place < size; place++) (*this)[place] = {S::last(), NONE};
  }

  // Replaces the first of `size` entries. The children of place p are places 2p + 1 and 2p + 2.
  __device__ __forceinline__ void replace(const Entry<S> entry, int size) const {
    int place = 0;
    for (int child = 1; child < size; child = 2 * place + 1) {
      const Entry<S> left = (*this)[child], right = (*this)[min(child + 1, size - 1)];
      const bool other = right.after(left);
      const Entry<S> worst = {other ? right.value : left.value, other ? right.column : left.column};
      if (entry.after(worst)) break;
      (*this)[place] = worst, place = child + other;
    }
    (*this)[place] = entry;
  }

  __device__ __forceinline__ void sort(int size) const {
    while (--size > 0) {
      const Entry<S> entry = (*this)[size];
      (*this)[size] = (*this)[0];
      replace(entry, size);
    }
  }
};

// Adds STEPS steps to a thread's sums: its rows of A are 8 apart, and so are its vectors of columns of B.
template <class S, int STEPS, int PITCH, int TM, int TN, class E = typename S::Element>
__device__ __forceinline__ void add_steps(E (&total)[TM][TN], const E* from_a, const E* from_b) {
  Fragments<S, STEPS, TM, TN> fragments;
  fragments.template load<PITCH * Vector<E>::length, 8, 8 * TN, 8 * Vector<E>::length>(from_a, from_b);
  fragments.add_to(total);
}

// A thread block has 8 TM rows, and goes through some columns in tiles of 8 TN, whose operands come in slabs of DEPTH steps: the next slab
// is copied during the current one. No step beyond the last is computed, because formulas need not obey 0 x 0 = 0. A finished tile takes
// the place of its last slab. Then a lane has a row: one comparison with the worst of the best so far rejects most entries.
template <class S, int TM, int TN, int DEPTH, bool VECTORS> __device__ __forceinline__ void select_best(const SelectK<S>& given) {
  using E = typename S::Element;
  using T = typename S::Value;
  constexpr int V = Vector<E>::length, ROWS = 8 * TM, COLUMNS = 8 * TN, THREADS = 64, PITCH = DEPTH / V + 1, WIDTH = COLUMNS / V;
  constexpr int HELD = V < 2 ? V : 2;                                  // steps of A that a thread has in registers
  constexpr int TOGETHER = 16 / sizeof(T), LINE = COLUMNS + TOGETHER;  // entries of a vector, and a row of entries with padding
  constexpr int SLAB = ROWS * PITCH + DEPTH * WIDTH;                   // vectors
  static_assert(ROWS * LINE * sizeof(T) <= SLAB * sizeof(Vector<E>) && COLUMNS % 32 == 0, "a tile fits the place of a slab");
  extern __shared__ __align__(16) char shared[];
  Vector<E>* const slabs = reinterpret_cast<Vector<E>*>(shared);
  const int kept = int(given.kept), n = int(given.n), k = int(given.k), lane = threadIdx.x % 32;
  const int y = threadIdx.x / 8, x = threadIdx.x % 8;
  const int parts = int((given.n + given.width - 1) / given.width), part = blockIdx.x % parts, top = blockIdx.x / parts * ROWS;
  const int rows = min(int(given.m) - top, ROWS), first = part * int(given.width), last = min(n, first + int(given.width));
  DeviceMatrix<S> A = given.A;
  S::advance(A.pointers, A.at(top, 0));
  Check<SelectK<S>> check(given);

  Entry<S>* const entries = reinterpret_cast<Entry<S>*>(slabs + 2 * SLAB);
  const int served = threadIdx.x / 32 * 4 + lane % 4 + lane / 4 * 8;  // the row of this lane, one of its warp's
  const bool serves = served < ROWS, lost = serves && given.nan_rows != nullptr && served < rows && given.nan_rows[top + served];
  const Heap<S, ROWS> best{entries + served};
  if (serves) best.clear(kept);

  const auto bring_slab = [&](int now, int left, int step) {
    DeviceMatrix<S> from_a = A, from_b = given.B;
    S::advance(from_a.pointers, from_a.at(0, step));
    S::advance(from_b.pointers, from_b.at(step, left));
    bring<S, ROWS, DEPTH / V, THREADS, VECTORS, false>(slabs + now * SLAB, PITCH, from_a, rows, k - step, check);
    bring<S, DEPTH, WIDTH, THREADS, VECTORS, false>(slabs + now * SLAB + ROWS * PITCH, WIDTH, from_b, k - step, last - left, check);
    if constexpr (VECTORS) commit_copies();
  };

  E total[TM][TN];
  fill(total, S::zero());
  bring_slab(0, first, 0);
  int left = first, step = 0;
#pragma unroll 1
  for (int now = 0; left < last; now = 1 - now) {
    if constexpr (VECTORS) wait_for_copies<0>();
    __syncthreads();  // this slab has arrived, and nobody reads the last one any more
    const bool end = k - step <= DEPTH;
    const int next_left = end ? left + COLUMNS : left, next_step = end ? 0 : step + DEPTH;
    if (next_left < last) bring_slab(1 - now, next_left, next_step);

    const E* const from_a = slabs[now * SLAB + y * PITCH].element;
    const E* const from_b = slabs[now * SLAB + ROWS * PITCH + x].element;
    if (k - step >= DEPTH) {
#pragma unroll 2
      for (int at = 0; at < DEPTH; at += HELD) add_steps<S, HELD, PITCH>(total, from_a + at, from_b + at * COLUMNS);
    } else {
#pragma unroll 1
      for (int at = 0; at < k - step; at++) add_steps<S, 1, PITCH>(total, from_a + at, from_b + at * COLUMNS);
    }
    if (end) {
      __syncthreads();
      T* const tile = reinterpret_cast<T*>(slabs + now * SLAB);
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += V) {
          Vector<T, V> some;
#pragma unroll
          for (int q = 0; q < V; q++) some.element[q] = S::finish(total[i][j + q], __longlong_as_double(given.total));
          *reinterpret_cast<Vector<T, V>*>(tile + (y + 8 * i) * LINE + x * V + 8 * j) = some;
        }
      __syncwarp();
      if (serves) {
        const T worst = best[0].value;
        const bool open = left - first < kept || worst != worst;  // takes any entry
#pragma unroll 1
        for (int c = 0; c < min(COLUMNS, last - left); c += 32) {
          T* const own = tile + served * LINE + c;
          const int columns = min(32, last - left - c);
          unsigned better = 0;
#pragma unroll
          for (int q = 0; q < 32; q += TOGETHER) {
            const Vector<T, TOGETHER> some = *reinterpret_cast<const Vector<T, TOGETHER>*>(own + q);
#pragma unroll
            for (int r = 0; r < TOGETHER; r++)
              if (S::LARGEST ? some.element[r] > worst : some.element[r] < worst) better |= 1u << (q + r);
          }
          if (open) better = 0xffffffff;
          if (lost || given.nan_columns != nullptr)
            for (int q = 0; q < columns; q++)
              if (lost || given.nan_columns[left + c + q]) own[q] = S::last(), better &= open ? 0xffffffff : ~(1u << q);
          better &= 0xffffffff >> (32 - columns);
          for (; better; better &= better - 1) {
            const int q = __ffs(better) - 1;
            const Entry<S> entry = {own[q], left + c + q};
            if (best[0].after(entry)) best.replace(entry, kept);
          }
        }
      }
      fill(total, S::zero());
    }
    left = next_left, step = next_step;
  }
  if (serves) best.sort(kept);
  __syncthreads();
  const long long begin = (part * given.m + top) * kept;
  for (int e = threadIdx.x; e < rows * kept; e += THREADS) {
    const Entry<S> entry = entries[e % kept * ROWS + e / kept];
    static_cast<T*>(given.values)[begin + e] = entry.value;
    given.columns[begin + e] = entry.column;
  }
}
