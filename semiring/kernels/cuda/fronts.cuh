// Fronts of a sparse elimination (see kernels/cpu/fronts.py), one level of the tree at once, a pivot block at a time.
//
// Every front has its own memory, where its Schur complement stays for the parent to read. A launch has a list of fronts, and `starts` has
// each front's blocks: bands of rows, or tiles that a pivot block changes.
//
// S is the semiring as `summing_structs` writes it: fronts hold encoded elements, and panels hold decoded ones.
#pragma once

#include "pivot.cuh"

constexpr int BAND = 16;  // rows

template <class S> struct Fronts {
  FRONTS_FIELDS

  __device__ __forceinline__ int width(int s) const { return columns[s + 1] - columns[s]; }
  __device__ __forceinline__ int beyond(int s) const { return int(row_starts[s + 1] - row_starts[s]); }

  // Returns the row of supernode s's front for a place at or beyond its first: an own vertex, or one of the sorted rows.
  __device__ __forceinline__ int local(int s, int place) const {
    if (place < columns[s + 1]) return place - columns[s];
    const int* const own = rows + row_starts[s];
    int low = 0, high = beyond(s);
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (own[middle] <= place ? low : high) = middle;
    }
    return width(s) + low;
  }
};

// The front of a block, and the block's number within the front.
template <class S> struct Front {
  int s, first, w, m;  // number, first place, own vertices, side
  long long block;
  typename S::Pointers at;

  __device__ __forceinline__ Front(const Fronts<S>& fronts, bool alone) {
    int low = blockIdx.x;
    block = 0;
    if (!alone) {
      block = fronts.base + blockIdx.x;
      int high = int(fronts.listed);
      low = 0;
      while (high - low > 1) {
        const int middle = (low + high) / 2;
        (fronts.starts[middle] <= block ? low : high) = middle;
      }
      block -= fronts.starts[low];
    }
    s = fronts.list[low];
    first = fronts.columns[s];
    w = fronts.width(s);
    m = w + fronts.beyond(s);
    at = fronts.fronts;
    S::advance(at, fronts.front_starts[s]);
  }
};

// targets <- the positions of each front's remaining rows in the parent's front.
template <class S> __device__ __forceinline__ void locate_rows(const Fronts<S>& fronts) {
  const int s = blockIdx.x, above = fronts.parents[s];
  if (above >= fronts.supernodes) return;
  for (long long i = fronts.row_starts[s] + threadIdx.x; i < fronts.row_starts[s + 1]; i += blockDim.x)
    fronts.targets[i] = fronts.local(above, fronts.rows[i]);
}

// A band of a front <- zero.
template <class S> __device__ __forceinline__ void clear_band(const Fronts<S>& fronts) {
  const Front<S> front(fronts, false);
  const long long size = BAND * static_cast<long long>(front.m), whole = static_cast<long long>(front.m) * front.m;
  for (long long i = front.block * size + threadIdx.x; i < min((front.block + 1) * size, whole); i += blockDim.x)
    S::put(front.at, i, S::zero());
}

// A front <- front + the edges of the supernode's vertices; with `REFLEXIVE`, + 1 on their diagonal.
template <class S, bool REFLEXIVE> __device__ __forceinline__ void enter_edges(const Fronts<S>& fronts) {
  const Front<S> front(fronts, true);
  if (REFLEXIVE)
    for (int i = threadIdx.x; i < front.w; i += blockDim.x) S::put(front.at, i * (front.m + 1ll), S::one());
  __syncthreads();
  for (int e = fronts.entry_starts[front.s] + threadIdx.x; e < fronts.entry_starts[front.s + 1]; e += blockDim.x) {
    const long long row = fronts.local(front.s, fronts.entry_rows[e]);
    const long long place = row * front.m + fronts.local(front.s, fronts.entry_columns[e]);
    S::put(front.at, place, S::add(S::get(front.at, place), S::encode(S::get(fronts.weights, fronts.entries[e]))));
  }
}

// A band of a front <- band + the children's Schur complements, one child after the other.
template <class S> __device__ __forceinline__ void extend_band(const Fronts<S>& fronts) {
  const Front<S> front(fronts, false);
  const long long top = front.block * BAND;
  for (int number = fronts.child_starts[front.s]; number < fronts.child_starts[front.s + 1]; number++) {
    const int child = fronts.children[number], w = fronts.width(child), r = fronts.beyond(child);
    const int* const targets = fronts.targets + fronts.row_starts[child];
    int first = 0, high = r;  // searches for the first row in the band
    while (first < high) {
      const int middle = (first + high) / 2;
      if (targets[middle] < top)
        first = middle + 1;
      else
        high = middle;
    }
    typename S::Pointers from = fronts.fronts;
    S::advance(from, fronts.front_starts[child] + w * (w + r + 1ll));
    for (int i = first + int(threadIdx.x / 32); i < r && targets[i] < top + BAND; i += int(blockDim.x / 32))
      for (int j = threadIdx.x % 32; j < r; j += 32) {
        const long long place = targets[i] * static_cast<long long>(front.m) + targets[j];
        const auto element = S::encode(S::decode(S::get(from, i * (w + r + 0ll) + j), fronts.threshold));
        S::put(front.at, place, S::add(S::get(front.at, place), element));
      }
    __syncthreads();  // the next child may add to the same places
  }
}

// Copies a band's share of the panels: the front's first rows, and its first columns.
template <class S> __device__ __forceinline__ void keep_band(const Fronts<S>& fronts) {
  const Front<S> front(fronts, false);
  const int top = int(front.block) * BAND, w = front.w, m = front.m;
  typename S::Pointers upper = fronts.upper, lower = fronts.lower;
  S::advance(upper, fronts.panel_starts[front.s]);
  S::advance(lower, fronts.panel_starts[front.s]);
  for (long long i = top * static_cast<long long>(m) + threadIdx.x; i < min(top + BAND, w) * static_cast<long long>(m); i += blockDim.x)
    S::put(upper, i, S::decode(S::get(front.at, i), fronts.threshold));
  for (int i = threadIdx.x; i < (min(top + BAND, m) - top) * w; i += blockDim.x) {
    const long long row = top + i / w;
    S::put(lower, row * w + i % w, S::decode(S::get(front.at, row * m + i % w), fronts.threshold));
  }
}

// A_KK <- A_KK* of each front, for its pivot block K of B vertices; the last block may be smaller.
template <class S, int B, int P, int TM, int TN, bool BY_STAR> __device__ __forceinline__ void close_pivots(const Fronts<S>& fronts) {
  const Front<S> front(fronts, true);
  const int k = int(fronts.step) * B;
  DeviceMatrix<S> A{front.at, front.m, 1, 0};
  S::advance(A.pointers, k * (front.m + 1ll));
  const Via via{nullptr, 0, 0, front.first + k};
  if constexpr (BY_STAR)
    eliminate_block<S, P, TM, TN>(A, min(B, front.w - k), via, fronts.divergent);
  else
    close_block<S, P, TM, TN, false>(A, min(B, front.w - k), via, fronts.divergent, false);
}

enum class Part { rows, columns, both, rest };

// A tile of A_IJ <- A_IJ + A_IK A_KJ with a closed pivot block K. Neither I nor J is K, or one of them is. Without `ADD`, the tile is
// A_IK A_KJ. A tile that is also an operand is copied to shared memory before it changes.
template <class S, int B, int TM, Part PART, bool ADD> __device__ __forceinline__ void update_tile(const Fronts<S>& fronts) {
  using E = typename S::Element;
  constexpr int TN = 4, ACROSS = B / TN, THREADS = B / TM * ACROSS, V = Vector<E>::length;
  static_assert(TM % V == 0 && V <= 4 && B % 8 == 0, "whole vectors of a column, and whole groups of vertices");
  alignas(16) __shared__ E left[B][B + 4], right[B][B];  // a row per vertex of K

  const Front<S> front(fronts, false);
  const int m = front.m, step = int(fronts.step), k = step * B, depth = min(B, front.w - k), after = k + depth;
  const int beside = step + (m - after + B - 1) / B;  // tiles in a row or column of A, except K
  const bool rest = PART == Part::rest;
  const int down = rest ? int(front.block / beside) : int(front.block % beside), across = rest ? int(front.block % beside) : down;
  const bool in_rows = PART == Part::rows || (PART == Part::both && front.block < beside), in_columns = !rest && !in_rows;
  const int i0 = in_rows ? k : down < step ? down * B : after + (down - step) * B;
  const int j0 = in_columns ? k : across < step ? across * B : after + (across - step) * B;
  const int rows = in_rows ? depth : min(B, m - i0), columns = in_columns ? depth : min(B, m - j0);
  typename S::Pointers a = front.at;
  const int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS * TM;

  E total[TM][TN];
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) {
      const int row = y + i, column = x + j * ACROSS;
      total[i][j] = S::zero();
      if (ADD && row < rows && column < columns) total[i][j] = S::get(a, (i0 + row) * static_cast<long long>(m) + j0 + column);
    }
  // Groups of eight vertices and four rows go to different banks, and come from whole sectors.
  const int whole = (depth + 7) / 8 * 8;
#pragma unroll 4
  for (int p = threadIdx.x; p < whole * B; p += THREADS) {
    const int q = p / (8 * B) * 8 + p % 8, row = p / 8 % B;
    left[q][row] = q < depth && row < rows ? S::get(a, (i0 + row) * static_cast<long long>(m) + k + q) : S::zero();
  }
#pragma unroll 4
  for (int p = threadIdx.x; p < whole * B; p += THREADS) {
    const int q = p / B, column = p % B;
    right[q][column] = q < depth && column < columns ? S::get(a, (k + q) * static_cast<long long>(m) + j0 + column) : S::zero();
  }
  __syncthreads();

  for (int q = 0; q < whole; q += 2) {
    E l[TM][2], r[TN][2];
#pragma unroll
    for (int p = 0; p < 2; p++) {
#pragma unroll
      for (int i = 0; i < TM; i += V) {
        const Vector<E> some = *reinterpret_cast<const Vector<E>*>(&left[q + p][y + i]);
#pragma unroll
        for (int e = 0; e < V; e++) l[i + e][p] = some.element[e];
      }
#pragma unroll
      for (int j = 0; j < TN; j++) r[j][p] = right[q + p][x + j * ACROSS];
    }
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++)
#pragma unroll
        for (int p = 0; p < 2; p += S::steps) S::accumulate(total[i][j], l[i] + p, r[j] + p);
  }
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) {
      const int row = y + i, column = x + j * ACROSS;
      if (row < rows && column < columns) S::put(a, (i0 + row) * static_cast<long long>(m) + j0 + column, total[i][j]);
    }
}
