// Slices of A and B in shared memory: how they lie there, and how they get there.
#pragma once

#include "matrix.cuh"

template <class S, int BM, int BN, int BK> struct Slices {
  using E = typename S::Element;
  static constexpr int V = Vector<E>::length;
  static constexpr int a_row = BK + V;  // a row of the slice of A, padded by one vector
  static constexpr int b_begin = BM * a_row, size = b_begin + BK * BN;
};

// How a slice is read: by vectors along its rows, or one by one along its rows or down its columns.
enum class Access { vectors, rows, columns };

// Brings slices of ROWS x COLUMNS elements of X into shared memory, one after the other: along X's columns for A, along its rows for B.
// An element is S::lanes numbers that are neighbours in that direction. What hangs over an edge of C is left out, for no result that is
// kept depends on it.
template <class S, int ROWS, int COLUMNS, int PITCH, int THREADS, bool IS_A, Access ACCESS> struct Stager {
  using E = typename S::Element;
  static constexpr bool DOWN_COLUMNS = ACCESS == Access::columns, VECTORS = ACCESS == Access::vectors;
  static constexpr bool INTERLEAVE = VECTORS && !IS_A && S::lanes == 2;  // the numbers of an element come from two rows
  static constexpr bool ALONG_K = IS_A == DOWN_COLUMNS;                  // a thread's copies follow each other in the direction of k
  static constexpr int WIDTH = VECTORS ? Vector<E>::length * (INTERLEAVE ? 2 : 1) : 1;
  static constexpr int PER_LINE = DOWN_COLUMNS ? ROWS : COLUMNS / WIDTH, STEP = THREADS / PER_LINE;
  static constexpr int COPIES = ROWS * COLUMNS / WIDTH / THREADS;
  static_assert(THREADS % PER_LINE == 0 && COPIES * WIDTH * THREADS == ROWS * COLUMNS, "the threads divide a slice");

  typename S::Pointers source;             // this thread's first element in the next slice
  const long long row, column, k, stride;  // between elements down, across and along k in numbers, and between the copies of a thread
  const int i, j;                          // where in a slice its first element is
  const int within;                        // how far that is from the edge of C
  const int place;                         // and in shared memory
  const Shared first;                      // that of the first buffer

  __device__ __forceinline__ Stager(const Matrix<S>& X, E* slices, int top, int left, int end, int thread)
      : source(X.pointers), row(IS_A ? X.row : X.row * S::lanes), column((VECTORS ? 1 : X.column) * (IS_A ? S::lanes : 1)),
        k(IS_A ? column / S::lanes : X.row), stride(STEP * (DOWN_COLUMNS ? column : row)),
        i(DOWN_COLUMNS ? thread % PER_LINE : thread / PER_LINE),
        j(DOWN_COLUMNS ? thread / PER_LINE : thread % PER_LINE * WIDTH), within(end - (IS_A ? top + i : left + j)),
        place(i * PITCH + j), first(kept(shared_address(slices + place))) {
    S::advance(source, X.at(top, left) + i * row + j * column);
  }

  __device__ __forceinline__ bool inside(int s) const { return (ALONG_K ? 0 : s * STEP) < within; }
  static __device__ __forceinline__ constexpr int apart(int s) { return s * STEP * (DOWN_COLUMNS ? 1 : PITCH); }

  // A whole slice; `offset` is that of the buffer.
  __device__ __forceinline__ void stage(int offset) {
    auto at = source;
#pragma unroll
    for (int s = 0; s < COPIES; s++) {
      const Shared target = first + (offset + apart(s)) * sizeof(E);
      if constexpr (VECTORS) {
        copy_async<16>(target, at.c0, inside(s));
        if constexpr (INTERLEAVE) copy_async<16>(target + 16, at.c0 + k, inside(s));
      } else {
        S::fetch(target, at, k, inside(s));
      }
      S::advance(at, stride);
    }
    if constexpr (ALONG_K)
      source = at;
    else
      S::advance(source, IS_A ? COLUMNS * column : ROWS * row);
  }

  // The last slice, of which only `steps` steps are there; the rest is zero.
  __device__ __forceinline__ void stage_rest(E* slice, int steps) const {
#pragma unroll 1
    for (int e = 0; e < COPIES * WIDTH; e++) {
      const int s = e / WIDTH, w = e % WIDTH, before = (IS_A ? j + w : i) + (ALONG_K ? s * STEP : 0);
      const bool there = inside(s) && (IS_A || w < within);
      slice[place + apart(s) + w] = S::part(source, s * stride + w * column, k, there ? steps - before * S::lanes : 0);
    }
  }

  // Makes elements of the rows that this thread has copied.
  __device__ __forceinline__ void settle(E* slice) const {
    if constexpr (INTERLEAVE)
#pragma unroll
      for (int s = 0; s < COPIES; s++) S::interleave(slice + place + apart(s));
  }
};
