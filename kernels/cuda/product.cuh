// C <- C + A x B over a semiring S (+ and x stand for its operations), or C <- A x B.
//
// A block computes a tile of BM x BN elements of C, a thread TM x TN of them in registers. Slices of BK columns of A and rows of B are
// staged through STAGES buffers in shared memory by asynchronous copies. Within a warp, 4 x 8 threads share the operands; a thread's
// rows lie BM / TM apart, and its columns are vectors that lie BN / (TN / V) apart, so that no two lanes meet in a bank.
//
// With a witness, each slice is summed on its own: one comparison a slice tells which slice won, and at the end the steps of
// that slice are looked through once more for the lowest k that gives the sum.
#pragma once

#include "matrix.cuh"

template <class S> struct Witness {
  Matrix<S> transposed;  // B with its columns contiguous
  int* via;
  long long row, batch;
  long long first;  // the vertex that k = 0 stands for
};

struct Extent {
  int m, n, k;
};

template <class S> struct Product {
  Matrix<S> A, B, C;
  long long m, n, k;
  long long tiles;  // of C
  long long fresh;  // C <- A x B
  Witness<S> witness;
};

// What one launch computes: products that do not depend on each other, one after the other in its grid.
template <class S, int COUNT> struct Products {
  Product<S> product[COUNT];

  // The product to which tile `number` of all belongs; `number` is then counted within it.
  __device__ __forceinline__ const Product<S>& of(int& number) const {
    int p = 0;
    for (; p + 1 < COUNT && number >= product[p].tiles; p++) number -= product[p].tiles;
    return product[p];
  }
};

template <class S, int BM, int BN, int BK, int TM, int TN, int STAGES> struct Tiling {
  using E = typename S::Element;
  static constexpr int V = Vector<E>::length;
  static constexpr int threads = (BM / TM) * (BN / TN);
  static constexpr int a_row = BK + V;  // a row of the slice of A, padded by one vector
  static constexpr int a_stage = BM * a_row, b_stage = BK * BN;
};

// How a slice is read: by vectors along its rows, or one by one along its rows or down its columns.
enum class Access { vectors, rows, columns };

// Brings slices of ROWS x COLUMNS elements of X into shared memory, one after the other: along X's columns for A, along its rows for B.
// Where a slice hangs over the edge of X, the last row or column stands for what is not there; no result that is kept depends on it.
template <class S, int ROWS, int COLUMNS, int PITCH, int THREADS, bool IS_A, Access ACCESS> struct Stager {
  using E = typename S::Element;
  static constexpr int WIDTH = ACCESS == Access::vectors ? Vector<E>::length : 1;
  static constexpr int PER_LINE = ACCESS == Access::columns ? ROWS : COLUMNS / WIDTH, STEP = THREADS / PER_LINE;
  static constexpr int COPIES = ROWS * COLUMNS / WIDTH / THREADS;
  static_assert(THREADS % PER_LINE == 0 && COPIES * WIDTH * THREADS == ROWS * COLUMNS, "the threads divide a slice");

  typename S::Pointers source;  // the first element of the next slice
  const long long row, column;
  const int rows, columns;  // of the slice that exist
  const int i, j;           // this thread's first element

  __device__ __forceinline__ Stager(const Matrix<S>& X, int top, int left, int rows, int columns)
      : source(X.pointers), row(X.row), column(ACCESS == Access::vectors ? 1 : X.column), rows(rows), columns(columns),
        i(ACCESS == Access::columns ? threadIdx.x % PER_LINE : threadIdx.x / PER_LINE),
        j(ACCESS == Access::columns ? threadIdx.x / PER_LINE : threadIdx.x % PER_LINE * WIDTH) {
    S::advance(source, X.at(top, left));
  }

  __device__ __forceinline__ void stage(E* shared) {
#pragma unroll
    for (int s = 0; s < COPIES; s++) {
      const int r = ACCESS == Access::columns ? i : i + s * STEP, c = ACCESS == Access::columns ? j + s * STEP : j;
      E* target = shared + r * PITCH + c;
      const long long at = (IS_A ? min(r, rows - 1) : r) * row + (IS_A ? c : min(c, columns - WIDTH)) * column;
      if constexpr (ACCESS == Access::vectors)
        copy_async<16>(target, source.c0 + at);
      else
        S::fetch(target, source, at);
    }
    S::advance(source, IS_A ? COLUMNS * column : ROWS * row);
  }
};

// The lowest k in [begin, begin + count) for which a x b is `sum`, counted from begin, where a and b point to k = begin.
template <class S> __device__ __forceinline__ int winner(typename S::Pointers a, long long a_step, typename S::Pointers b, long long b_step, typename S::Element sum, int count) {
  for (int q = 0; q < count; q++)
    if (S::same(S::mul(S::get(a, q * a_step), S::get(b, q * b_step)), sum)) return q;
  return 0;
}

// The same for COUNT steps that lie side by side in whole vectors, without a branch, so that many are under way at once.
template <class S, int COUNT> __device__ __forceinline__ int winner(typename S::Pointers a, typename S::Pointers b, typename S::Element sum) {
  using E = typename S::Element;
  constexpr int V = Vector<E>::length;
  Vector<E> left[COUNT / V], right[COUNT / V];
#pragma unroll
  for (int v = 0; v < COUNT / V; v++) {
    left[v] = reinterpret_cast<const Vector<E>*>(a.c0)[v];
    right[v] = reinterpret_cast<const Vector<E>*>(b.c0)[v];
  }
  int found = 0;
#pragma unroll
  for (int q = COUNT - 1; q >= 0; q--)
    if (S::same(S::mul(left[q / V].element[q % V], right[q / V].element[q % V]), sum)) found = q;
  return found;
}

template <bool FIRST, class T, class U> __device__ __forceinline__ auto& choose(T& first, U& second) {
  if constexpr (FIRST)
    return first;
  else
    return second;
}

template <class S, int BM, int BN, int BK, int TM, int TN, int STAGES, Access A_ACCESS, Access B_ACCESS, bool WITNESS, int COUNT>
__device__ __forceinline__ void multiply_tile(const Products<S, COUNT>& products) {
  using E = typename S::Element;
  using Tile = Tiling<S, BM, BN, BK, TM, TN, STAGES>;
  constexpr int V = Tile::V, THREADS = Tile::threads;
  constexpr int DOWN = BM / TM, ACROSS = BN / (TN / V), WARPS = BN / TN / 8;
  constexpr int DEPTH = V > S::steps ? V : S::steps;  // steps whose operands a thread holds
  constexpr int GROUP = 8;  // block rows that run together, so that they share B in the cache
  static_assert(TN % V == 0 && BK % V == 0 && BK % S::steps == 0, "tile");
  extern __shared__ __align__(16) char shared[];
  E* const a_stages = reinterpret_cast<E*>(shared);
  E* const b_stages = a_stages + STAGES * Tile::a_stage;

  int number = blockIdx.x;
  const Product<S>& product = products.of(number);
  Matrix<S> A = product.A, B = product.B, C = product.C;
  const Extent extent = {int(product.m), int(product.n), int(product.k)};
  const bool fresh = product.fresh;
  Witness<S> witness = product.witness;
  const int across = (extent.n + BN - 1) / BN, down = (extent.m + BM - 1) / BM;
  const int group = number / (GROUP * across), in_group = number % (GROUP * across);
  const int rows = min(GROUP, down - group * GROUP);
  const int top = (group * GROUP + in_group % rows) * BM, left = in_group / rows * BN;
  S::advance(A.pointers, blockIdx.y * A.batch);
  S::advance(B.pointers, blockIdx.y * B.batch);
  S::advance(C.pointers, blockIdx.y * C.batch);

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int tx = (warp % WARPS * 8 + lane % 8) * V, ty = warp / WARPS * 4 + lane / 8;
  const int slices = extent.k / BK;  // whole ones
  Stager<S, BM, BK, Tile::a_row, THREADS, true, A_ACCESS> stage_a(A, top, 0, extent.m - top, extent.k);
  Stager<S, BK, BN, BN, THREADS, false, B_ACCESS> stage_b(B, 0, left, extent.k, extent.n - left);
  auto stage = [&](int slice, int buffer) {
    if (slice < slices) {
      stage_a.stage(a_stages + buffer * Tile::a_stage);
      stage_b.stage(b_stages + buffer * Tile::b_stage);
    }
    commit_copies();
  };

  E sum[TM][TN];
  unsigned won[WITNESS ? TM : 1][WITNESS ? TN / 2 : 1];  // the winning slices, two in a register
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) {
      sum[i][j] = S::zero();
      if constexpr (WITNESS) won[i][j / 2] = 0xffffffff;
    }

  // What a slice gave, against all before it; without a witness it has gone to the sums already.
  auto merge = [&](E(&part)[WITNESS ? TM : 1][WITNESS ? TN : 1], int slice) {
    if constexpr (WITNESS) {
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) {
          const E better = S::add(sum[i][j], part[i][j]);
          if (!S::same(better, sum[i][j])) won[i][j / 2] = __byte_perm(won[i][j / 2], slice, j % 2 ? 0x5410 : 0x3254);
          sum[i][j] = better;
        }
    }
  };

#pragma unroll
  for (int slice = 0; slice < STAGES - 1; slice++) stage(slice, slice);
  int reading = 0, writing = STAGES - 1;
  for (int slice = 0; slice < slices; slice++) {
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    stage(slice + STAGES - 1, writing);
    const E* a_slice = a_stages + reading * Tile::a_stage + ty * Tile::a_row;
    const E* b_slice = b_stages + reading * Tile::b_stage + tx;
    reading = reading + 1 == STAGES ? 0 : reading + 1;
    writing = writing + 1 == STAGES ? 0 : writing + 1;
    E part[WITNESS ? TM : 1][WITNESS ? TN : 1];
#pragma unroll
    for (int k = 0; k < BK; k += DEPTH) {
      Vector<E> a[TM][DEPTH / V];
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int d = 0; d < DEPTH / V; d++) a[i][d] = *reinterpret_cast<const Vector<E>*>(a_slice + i * DOWN * Tile::a_row + k + d * V);
#pragma unroll
      for (int q = 0; q < DEPTH; q += S::steps) {
        Vector<E> b[S::steps][TN / V];
#pragma unroll
        for (int p = 0; p < S::steps; p++)
#pragma unroll
          for (int j = 0; j < TN / V; j++) b[p][j] = *reinterpret_cast<const Vector<E>*>(b_slice + (k + q + p) * BN + j * ACROSS);
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
          for (int j = 0; j < TN; j++) {
            E left_of[S::steps], right_of[S::steps];
#pragma unroll
            for (int p = 0; p < S::steps; p++) {
              left_of[p] = a[i][(q + p) / V].element[(q + p) % V];
              right_of[p] = b[p][j / V].element[j % V];
            }
            if constexpr (WITNESS) {
              if (k + q == 0) part[i][j] = S::zero();
              S::accumulate(part[i][j], left_of, right_of);
            } else {
              S::accumulate(sum[i][j], left_of, right_of);
            }
          }
      }
    }
    merge(part, slice);
  }
  if (extent.k % BK) {
    E part[WITNESS ? TM : 1][WITNESS ? TN : 1];
    auto& total = choose<WITNESS>(part, sum);
    if constexpr (WITNESS)
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) part[i][j] = S::zero();
#pragma unroll 1
    for (int k = slices * BK; k < extent.k; k++) {
      E b[TN];
#pragma unroll
      for (int j = 0; j < TN; j++) b[j] = S::get(B.pointers, B.at(k, min(left + tx + j / V * ACROSS + j % V, extent.n - 1)));
#pragma unroll
      for (int i = 0; i < TM; i++) {
        const E a = S::get(A.pointers, A.at(min(top + ty + i * DOWN, extent.m - 1), k));
#pragma unroll
        for (int j = 0; j < TN; j++) total[i][j] = S::add(total[i][j], S::mul(a, b[j]));
      }
    }
    merge(part, slices);
    __syncthreads();  // where C is an operand, no element of it changes before all have been read
  }

  if constexpr (WITNESS) {
    // By way of shared memory, so that neighbouring threads look for the winners of neighbouring elements.
    __syncthreads();
    E* const sums = reinterpret_cast<E*>(shared);
    unsigned short* const slices_of = reinterpret_cast<unsigned short*>(sums + BM * BN);
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++) {
        const int at = (ty + i * DOWN) * BN + tx + j / V * ACROSS + j % V;
        sums[at] = sum[i][j];
        slices_of[at] = j % 2 ? won[i][j / 2] >> 16 : won[i][j / 2] & 0xffff;
      }
    __syncthreads();
    S::advance(witness.transposed.pointers, blockIdx.y * witness.transposed.batch);
    witness.via += blockIdx.y * witness.batch;
    auto find = [&](int r, int c, int slice, E total) {
      auto a = A.pointers, b = witness.transposed.pointers;
      if constexpr (A_ACCESS == Access::vectors) {
        if (extent.k >= BK) {
          // The last slice may be short; no step before it gives its sum, or an earlier slice would have won.
          const int begin = min(slice * BK, extent.k - BK);
          S::advance(a, A.at(r, begin));
          S::advance(b, witness.transposed.at(c, begin));
          return begin + winner<S, BK>(a, b, total);
        }
      }
      const int begin = slice * BK;
      S::advance(a, A.at(r, begin));
      S::advance(b, witness.transposed.at(c, begin));
      return begin + winner<S>(a, A.column, b, witness.transposed.column, total, min(BK, extent.k - begin));
    };
#pragma unroll 4
    for (int e = threadIdx.x; e < BM * BN; e += THREADS) {
      const int r = min(top + e / BN, extent.m - 1), c = min(left + e % BN, extent.n - 1), slice = slices_of[e];
      const int k = find(r, c, slice == 0xffff ? 0 : slice, sums[e]);
      if (top + e / BN == r && left + e % BN == c) {
        const long long at = C.at(r, c);
        const E old = fresh ? S::zero() : S::get(C.pointers, at), result = S::add(old, sums[e]);
        if (fresh || !S::same(result, old)) {
          S::put(C.pointers, at, fresh ? sums[e] : result);
          witness.via[r * witness.row + c] = slice == 0xffff ? -1 : int(witness.first) + k;
        }
      }
    }
    return;
  }

  const bool whole = S::vectors && C.column == 1 && C.row % V == 0 && S::aligned(C.pointers);
#pragma unroll
  for (int i = 0; i < TM; i++) {
    const int r = top + ty + i * DOWN;
    if (r >= extent.m) break;
#pragma unroll
    for (int j = 0; j < TN / V; j++) {
      const int c = left + tx + j * ACROSS;
      const long long at = C.at(r, c);
      if (whole && c + V <= extent.n) {
        auto* place = reinterpret_cast<Vector<E>*>(C.pointers.c0 + at);
        Vector<E> result;
        if (!fresh) result = *place;
#pragma unroll
        for (int q = 0; q < V; q++) result.element[q] = fresh ? sum[i][j * V + q] : S::add(result.element[q], sum[i][j * V + q]);
        *place = result;
      } else {
#pragma unroll
        for (int q = 0; q < V; q++) {
          if (c + q >= extent.n) break;
          const long long place = at + q * C.column;
          S::put(C.pointers, place, fresh ? sum[i][j * V + q] : S::add(S::get(C.pointers, place), sum[i][j * V + q]));
        }
      }
    }
  }
}
