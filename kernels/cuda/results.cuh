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
    const int across = (n + BN - 1) / BN, down = (m + BM - 1) / BM;
    int part = 0;  // counted, of a few, because quotients would take registers from the sums
    for (; number >= across * down; part++) number -= across * down;
    const int begin = part * int(product.depth);
    k = min(k - begin, int(product.depth));
    S::advance(A.pointers, blockIdx.y * A.batch + begin * A.column);
    S::advance(B.pointers, blockIdx.y * B.batch + begin * B.row);
    S::advance(C.pointers, (blockIdx.y + part) * C.batch);
    S::advance(witness.transposed.pointers, blockIdx.y * witness.transposed.batch);
    witness.via += blockIdx.y * witness.batch;

    const int group = number / (GROUP * across), in_group = number % (GROUP * across);
    const int rows = min(GROUP, down - group * GROUP);
    top = (group * GROUP + in_group % rows) * BM, left = in_group / rows * BN;
    const int warp = thread / 32, lane = thread % 32;
    row = warp / WARPS * 4 + lane / 8, column = (warp % WARPS * 8 + lane % 8) * V;
  }

  // Whether C can be read and written by vectors.
  __device__ __forceinline__ bool vectors() const { return S::vectors && C.column == 1 && C.row % V == 0 && S::aligned(C.pointers); }
};

// What C has in ROWS rows of a thread, from its row `first` on; beyond C something else. All of it is under way before any of it is used.
template <int ROWS, class S, int BM, int BN, int TM, int TN>
__device__ __forceinline__ void read_rows(Vector<typename S::Element> (&old)[ROWS][TN / Vector<typename S::Element>::length], const Task<S, BM, BN, TM, TN>& task, int first) {
  constexpr int V = Vector<typename S::Element>::length;
  const Matrix<S>& C = task.C;
  const bool vectors = task.vectors();
#pragma unroll
  for (int i = 0; i < ROWS; i++)
#pragma unroll
    for (int j = 0; j < TN / V; j++) {
      const int r = min(task.top + task.row + (first + i) * task.DOWN, task.m - 1), c = task.left + task.column + j * task.ACROSS;
      if (vectors && c + V <= task.n) {
        old[i][j] = S::get_vector(C.pointers, C.at(r, c));
      } else {
#pragma unroll
        for (int q = 0; q < V; q++) old[i][j].element[q] = S::get(C.pointers, C.at(r, min(c + q, task.n - 1)));
      }
    }
}

// C <- C + sums, or C <- sums.
template <class S, int BM, int BN, int TM, int TN>
__device__ __forceinline__ void store(Sums<S, TM, TN, false>& sums, const Task<S, BM, BN, TM, TN>& task) {
  using E = typename S::Element;
  constexpr int V = Vector<E>::length, ROWS = TM % 2 == 0 ? TM / 2 : TM;
  const Matrix<S>& C = task.C;
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) {
      sums.total[i][j] = S::finish(sums.total[i][j]);
      if constexpr (S::lanes == 2) sums.total[i][j] = S::both(sums.total[i][j]);
    }

  const bool vectors = task.vectors();
#pragma unroll
  for (int first = 0; first < TM; first += ROWS) {
    Vector<E> result[ROWS][TN / V];
    if (!task.fresh) read_rows(result, task, first);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      const int r = task.top + task.row + (first + i) * task.DOWN;
      if (r >= task.m) break;
#pragma unroll
      for (int j = 0; j < TN / V; j++) {
        const int c = task.left + task.column + j * task.ACROSS;
        const long long at = C.at(r, c);
#pragma unroll
        for (int q = 0; q < V; q++) {
          E& element = result[i][j].element[q];
          element = task.fresh ? sums.total[first + i][j * V + q] : S::add(element, sums.total[first + i][j * V + q]);
        }
        if (vectors && c + V <= task.n) {
          S::put_vector(C.pointers, at, result[i][j]);
        } else {
#pragma unroll
          for (int q = 0; q < V; q++)
            if (c + q < task.n) S::put(C.pointers, at + q * C.column, result[i][j].element[q]);
        }
      }
    }
  }
}

// How it is found which k won: not at all, in the slices, which are all in shared memory, or in device memory.
enum class Search { none, near, far };

// Steps among which the winner is looked for. To compare all sums is cheaper than to look through many steps in shared memory.
template <int BK> __device__ constexpr int slab_of(Search search) {
  const int most = search == Search::near ? 4 : search == Search::far ? 16 : BK;
  return BK < most ? BK : most;
}

// sums <- zero + C, unless C is to be replaced.
template <class S, int BM, int BN, int TM, int TN>
__device__ __forceinline__ void begin_with(Sums<S, TM, TN, true>& sums, const Task<S, BM, BN, TM, TN>& task) {
  constexpr int V = Vector<typename S::Element>::length;
  if (task.fresh) return;
  Vector<typename S::Element> old[TM][TN / V];
  read_rows(old, task, 0);
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) sums.total[i][j] = S::add(sums.total[i][j], old[i][j / V].element[j % V]);
}

// The elements of C that the sums of a warp improve: values are written at once, and those whose winner is to be found go to a list in
// shared memory, place and slab in one number, so that all lanes have as many to look for.
template <class S, int BM, int BN, int TM, int TN> struct Improved {
  using E = typename S::Element;
  static constexpr int V = Vector<E>::length;
  unsigned* const list;
  int count, lane;

  __device__ __forceinline__ Improved(const Sums<S, TM, TN, true>& sums, unsigned* lists, const Task<S, BM, BN, TM, TN>& task)
      : list(lists + task.thread / 32 * (32 * TM * TN)), lane(task.thread % 32) {
    const Matrix<S>& C = task.C;
    const bool vectors = task.vectors();
    int here = 0;
#pragma unroll
    for (int i = 0; i < TM; i++) {
      const int r = task.top + task.row + i * task.DOWN;
      if (r >= task.m) break;
#pragma unroll
      for (int j = 0; j < TN / V; j++) {
        const int c = task.left + task.column + j * task.ACROSS;
        const long long at = C.at(r, c);
        Vector<E> result;
        int better = 0;
#pragma unroll
        for (int q = 0; q < V; q++) {
          const bool won = c + q < task.n && sums.slab(i, j * V + q) != sums.NONE;
          better += won;
          result.element[q] = sums.total[i][j * V + q];
          if (task.fresh && !won && c + q < task.n) task.witness.via[r * task.witness.row + c + q] = -1;
        }
        here += better;
        if (!task.fresh && better == 0) continue;
        if (vectors && c + V <= task.n) {
          S::put_vector(C.pointers, at, result);
        } else {
#pragma unroll
          for (int q = 0; q < V; q++)
            if (c + q < task.n) S::put(C.pointers, at + q * C.column, result.element[q]);
        }
      }
    }
    int end = here;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const int others = __shfl_up_sync(0xffffffff, end, d);
      if (lane >= d) end += others;
    }
    count = __shfl_sync(0xffffffff, end, 31);
    if (count == 0) return;
    unsigned* next = list + end - here;
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++) {
        const int r = task.row + i * task.DOWN, c = task.column + j / V * task.ACROSS + j % V;
        const unsigned slab = sums.slab(i, j);
        if (slab != sums.NONE && task.top + r < task.m && task.left + c < task.n) *next++ = slab << 16 | (r * BN + c);
      }
    __syncwarp();
  }

  __device__ __forceinline__ void put(const Task<S, BM, BN, TM, TN>& task, int place, int k) const {
    task.witness.via[(task.top + place / BN) * task.witness.row + task.left + place % BN] = int(task.witness.first) + k;
  }

  // One lane looks through a slab, from its end: whatever is as good as the best behind it wins.
  template <class Slice, int BK, int SLAB> __device__ __forceinline__ void search_near(const E* slices, const Task<S, BM, BN, TM, TN>& task) const {
    for (int e = lane; e < count; e += 32) {
      const int place = list[e] & 0xffff, begin = (list[e] >> 16) * SLAB;
      const E* const slice = slices + begin / BK * Slice::size;
      const E* const a = slice + place / BN * Slice::a_row + begin % BK;
      const E* const b = slice + Slice::b_begin + begin % BK * BN + place % BN;
      E best = S::zero();
      int winner = 0;
#pragma unroll
      for (int q = SLAB - 1; q >= 0; q--) {
        const E candidate = S::mul(a[q], b[q * BN]);
        if (begin + q < task.k && S::same(S::add(candidate, best), candidate)) {
          best = candidate;
          winner = q;
        }
      }
      put(task, place, begin + winner);
    }
  }

  // Some lanes look through a slab together, a few steps each, by vectors where they can; several slabs are under way at once.
  template <int SLAB, bool VECTORS> __device__ __forceinline__ void search_far(const Task<S, BM, BN, TM, TN>& task) const {
    constexpr int WIDTH = VECTORS ? V : 1, LANES = SLAB / WIDTH, TEAMS = 32 / LANES, TOGETHER = sizeof(E) <= 8 ? 4 : 2;
    static_assert(LANES <= 32, "a slab is for one warp");
    using Steps = Vector<E, WIDTH>;
    const Matrix<S>&A = task.A, &B = task.witness.transposed;
    const int member = lane % LANES, team = lane / LANES;
    for (int first = 0; first < count; first += TEAMS * TOGETHER) {
      int place[TOGETHER], begin[TOGETHER];
      E sum[TOGETHER];
      Steps a[TOGETHER], b[TOGETHER];
#pragma unroll
      for (int t = 0; t < TOGETHER; t++) {
        const unsigned entry = list[min(first + t * TEAMS + team, count - 1)];
        place[t] = entry & 0xffff, begin[t] = (entry >> 16) * SLAB + member * WIDTH;
        const int r = task.top + place[t] / BN, c = task.left + place[t] % BN, k = min(begin[t], task.k - 1);
        sum[t] = S::get(task.C.pointers, task.C.at(r, c));
        if constexpr (VECTORS) {
          a[t] = *reinterpret_cast<const Steps*>(A.pointers.c0 + (r * A.row + k / V * V));
          b[t] = *reinterpret_cast<const Steps*>(B.pointers.c0 + (c * B.row + k / V * V));
        } else {
          a[t].element[0] = S::get(A.pointers, A.at(r, k)), b[t].element[0] = S::get(B.pointers, B.at(c, k));
        }
      }
#pragma unroll
      for (int t = 0; t < TOGETHER; t++) {
        int winner = WIDTH;
#pragma unroll
        for (int q = WIDTH - 1; q >= 0; q--)
          if (begin[t] + q < task.k && S::same(S::mul(a[t].element[q], b[t].element[q]), sum[t])) winner = q;
        const unsigned found = __ballot_sync(0xffffffff, winner < WIDTH) << (32 - LANES - team * LANES) >> (32 - LANES);
        if (member == __ffs(found) - 1) put(task, place[t], begin[t] + winner);
      }
    }
  }
};
