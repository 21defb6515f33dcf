// From sums in registers to C, and to the construction matrix.
#pragma once

#include "products.cuh"
#include "sums.cuh"

// What a thread has to do: a tile of one of the products, and in it rows from `row` on, BM / TM apart, and vectors of columns from
// `column` on. It is made twice, before and after the main loop, which leaves the registers to the sums.
template <class S, int BM, int BN, int TM, int TN> struct Task {
  static constexpr int V = Vector<typename S::Element>::length, WARPS = BN / TN / 8;
  static constexpr int THREADS = (BM / TM) * (BN / TN), DOWN = BM / TM, ACROSS = BN / (TN / V);
  static constexpr int GROUP = 8;  // block rows that run together, so that they share B in the cache
  Matrix<S> A, B, C;
  Witness<S> witness;
  int m, n, k;
  bool fresh;
  int thread, top, left;  // of the tile
  int row, column;        // in the tile

  template <int COUNT> __device__ __forceinline__ explicit Task(const Products<S, COUNT>& products) : thread(thread_number()) {
    int number = block_number();
    const Product<S>& product = products.of(number);
    A = product.A, B = product.B, C = product.C, witness = product.witness;
    m = product.m, n = product.n, k = product.k, fresh = product.fresh;
    S::advance(A.pointers, blockIdx.y * A.batch);
    S::advance(B.pointers, blockIdx.y * B.batch);
    S::advance(C.pointers, blockIdx.y * C.batch);
    S::advance(witness.transposed.pointers, blockIdx.y * witness.transposed.batch);
    witness.via += blockIdx.y * witness.batch;

    const int across = (n + BN - 1) / BN, down = (m + BM - 1) / BM;
    const int group = number / (GROUP * across), in_group = number % (GROUP * across);
    const int rows = min(GROUP, down - group * GROUP);
    top = (group * GROUP + in_group % rows) * BM, left = in_group / rows * BN;
    const int warp = thread / 32, lane = thread % 32;
    row = warp / WARPS * 4 + lane / 8, column = (warp % WARPS * 8 + lane % 8) * V;
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

// C <- C + sums, or C <- sums.
template <class S, int BM, int BN, int TM, int TN>
__device__ __forceinline__ void store(Sums<S, TM, TN, false>& sums, const Task<S, BM, BN, TM, TN>& task) {
  using E = typename S::Element;
  constexpr int V = Vector<E>::length;
  const Matrix<S>& C = task.C;
  if constexpr (S::lanes == 2)
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++) sums.total[i][j] = S::both(sums.total[i][j]);

  const bool vectors = S::vectors && C.column == 1 && C.row % V == 0 && S::aligned(C.pointers);
#pragma unroll
  for (int i = 0; i < TM; i++) {
    const int r = task.top + task.row + i * task.DOWN;
    if (r >= task.m) break;
#pragma unroll
    for (int j = 0; j < TN / V; j++) {
      const int c = task.left + task.column + j * task.ACROSS;
      const long long at = C.at(r, c);
      if (vectors && c + V <= task.n) {
        Vector<E> result;
        if (!task.fresh) result = S::get_vector(C.pointers, at);
#pragma unroll
        for (int q = 0; q < V; q++)
          result.element[q] = task.fresh ? sums.total[i][j * V + q] : S::add(result.element[q], sums.total[i][j * V + q]);
        S::put_vector(C.pointers, at, result);
      } else {
#pragma unroll
        for (int q = 0; q < V; q++) {
          if (c + q >= task.n) break;
          const long long here = at + q * C.column;
          S::put(C.pointers, here, task.fresh ? sums.total[i][j * V + q] : S::add(S::get(C.pointers, here), sums.total[i][j * V + q]));
        }
      }
    }
  }
}

// The same, and which k won, for `whole` slices and the rest; `slices` is shared memory. VECTORS: A and the transposed B are read by them.
template <bool VECTORS, int BK, class S, int BM, int BN, int TM, int TN>
__device__ __forceinline__ void store_with_witness(const Sums<S, TM, TN, true>& sums, typename S::Element* slices, const Task<S, BM, BN, TM, TN>& task, int whole) {
  using E = typename S::Element;
  constexpr int V = Vector<E>::length;
  // By way of shared memory, so that neighbouring threads look for the winners of neighbouring elements.
  __syncthreads();
  E* const totals = slices;
  unsigned short* const slices_of = reinterpret_cast<unsigned short*>(totals + BM * BN);
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) {
      const int at = (task.row + i * task.DOWN) * BN + task.column + j / V * task.ACROSS + j % V;
      totals[at] = sums.total[i][j];
      slices_of[at] = j % 2 ? sums.won[i][j / 2] >> 16 : sums.won[i][j / 2] & 0xffff;
    }
  __syncthreads();
  const Matrix<S>&A = task.A, &C = task.C, &transposed = task.witness.transposed;
  auto find = [&](int r, int c, int slice, E total) {
    auto a = A.pointers, b = transposed.pointers;
    const int begin = slice * BK;
    S::advance(a, A.at(r, begin));
    S::advance(b, transposed.at(c, begin));
    if constexpr (VECTORS) {
      if (slice < whole) return begin + winner<S, BK>(a, b, total);
    }
    return begin + winner<S>(a, A.column, b, transposed.column, total, min(BK, task.k - begin));
  };
#pragma unroll 4
  for (int e = task.thread; e < BM * BN; e += task.THREADS) {
    const int r = min(task.top + e / BN, task.m - 1), c = min(task.left + e % BN, task.n - 1), slice = slices_of[e];
    const int k = find(r, c, slice == 0xffff ? 0 : slice, totals[e]);
    if (task.top + e / BN == r && task.left + e % BN == c) {
      const long long at = C.at(r, c);
      const E old = task.fresh ? S::zero() : S::get(C.pointers, at), result = S::add(old, totals[e]);
      if (task.fresh || !S::same(result, old)) {
        S::put(C.pointers, at, task.fresh ? totals[e] : result);
        task.witness.via[r * task.witness.row + c] = slice == 0xffff ? -1 : int(task.witness.first) + k;
      }
    }
  }
}
