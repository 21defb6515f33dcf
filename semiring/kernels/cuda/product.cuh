// C <- C + A x B over a semiring S (+ and x stand for its operations), or C <- A x B.
//
// The main loop. A thread block computes a tile of BM x BN elements of C, and a thread TM x TN of them in registers. Slices of BK columns
// of A and rows of B go through STAGES buffers in shared memory by asynchronous copies (tile.cuh). Within a warp, 4 x 8 threads share
// operands. A thread's rows are BM / TM apart, and its column vectors BN / (TN / V) apart, which avoids bank conflicts. While a thread
// computes with the fragments of HELD steps, the next ones are loaded; UNROLLED steps are unrolled, and must fit the instruction cache.
//
// The epilogue merges the accumulators with C. With a witness, accumulators begin with C, and one comparison per slab of
// steps finds the last slab that improved each element. The epilogue searches that slab again for the lowest k with the final sum: in
// shared memory if all slices are still there, else in global memory.
#pragma once

#include "tile.cuh"

// The epilogue: from accumulators to C and the construction matrix.

// Loads ROWS rows of a thread's part of C, from row `first` on, with arbitrary elements beyond C. All loads start before any is used.
template <int ROWS, class S, int BM, int BN, int TM, int TN>
__device__ __forceinline__ void read_rows(Vector<typename S::Element> (&old)[ROWS][TN / Vector<typename S::Element>::length], const Task<S, BM, BN, TM, TN>& task, int first) {
  constexpr int V = Vector<typename S::Element>::length;
  const DeviceMatrix<S>& C = task.C;
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

// C <- C + accumulators, or C <- accumulators.
template <class S, int BM, int BN, int TM, int TN>
__device__ __forceinline__ void store(Accumulators<S, TM, TN, false>& accumulators, const Task<S, BM, BN, TM, TN>& task) {
  using E = typename S::Element;
  constexpr int V = Vector<E>::length, ROWS = TM % 2 == 0 ? TM / 2 : TM;
  const DeviceMatrix<S>& C = task.C;
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) {
      accumulators.total[i][j] = S::epilogue(accumulators.total[i][j]);
      if constexpr (S::lanes == 2) accumulators.total[i][j] = S::both(accumulators.total[i][j]);
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
          element = task.fresh ? accumulators.total[first + i][j * V + q] : S::add(element, accumulators.total[first + i][j * V + q]);
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

// The memory where winners are looked up; shared memory must still hold all slices.
enum class Lookup { none, shared, global };

// Steps among which a winner is looked up. Comparing all sums is cheaper than searching many steps in shared memory.
template <int BK> __device__ constexpr int slab_of(Lookup lookup) {
  const int most = lookup == Lookup::shared ? 4 : lookup == Lookup::global ? 16 : BK;
  return BK < most ? BK : most;
}

// accumulators <- accumulators + C, unless C is to be replaced.
template <class S, int BM, int BN, int TM, int TN>
__device__ __forceinline__ void begin_with(Accumulators<S, TM, TN, true>& accumulators, const Task<S, BM, BN, TM, TN>& task) {
  constexpr int V = Vector<typename S::Element>::length;
  if (task.fresh) return;
  Vector<typename S::Element> old[TM][TN / V];
  read_rows(old, task, 0);
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) accumulators.total[i][j] = S::add(accumulators.total[i][j], old[i][j / V].element[j % V]);
}

// The elements of C that a warp's accumulators improve. Values are written at once. Elements with a winner to look up go to a list in
// shared memory, with place and slab in one number, so that all lanes have equally many.
template <class S, int BM, int BN, int TM, int TN> struct Improved {
  using E = typename S::Element;
  static constexpr int V = Vector<E>::length;
  unsigned* const list;
  int count, lane;

  __device__ __forceinline__ Improved(const Accumulators<S, TM, TN, true>& accumulators, unsigned* lists, const Task<S, BM, BN, TM, TN>& task)
      : list(lists + task.thread / 32 * (32 * TM * TN)), lane(task.thread % 32) {
    const DeviceMatrix<S>& C = task.C;
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
          const bool won = c + q < task.n && accumulators.slab(i, j * V + q) != accumulators.NO_SLAB;
          better += won;
          result.element[q] = accumulators.total[i][j * V + q];
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
        const unsigned slab = accumulators.slab(i, j);
        if (slab != accumulators.NO_SLAB && task.top + r < task.m && task.left + c < task.n) *next++ = slab << 16 | (r * BN + c);
      }
    __syncwarp();
  }

  __device__ __forceinline__ void put(const Task<S, BM, BN, TM, TN>& task, int place, int k) const {
    task.witness.via[(task.top + place / BN) * task.witness.row + task.left + place % BN] = int(task.witness.first) + k;
  }

  // One lane searches a slab backwards: a candidate as good as the best so far wins.
  template <class Layout, int BK, int SLAB> __device__ __forceinline__ void look_up_in_shared(const E* stages, const Task<S, BM, BN, TM, TN>& task) const {
    for (int e = lane; e < count; e += 32) {
      const int place = list[e] & 0xffff, begin = (list[e] >> 16) * SLAB;
      const E* const slice = stages + begin / BK * Layout::size;
      const E* const a = slice + place / BN * Layout::a_row + begin % BK;
      const E* const b = slice + Layout::b_begin + begin % BK * BN + place % BN;
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

  // Several lanes search a slab, a few steps each, by vectors if possible; several slabs are in flight at once.
  template <int SLAB, bool VECTORS> __device__ __forceinline__ void look_up_in_global(const Task<S, BM, BN, TM, TN>& task) const {
    constexpr int WIDTH = VECTORS ? V : 1, LANES = SLAB / WIDTH, TEAMS = 32 / LANES, TOGETHER = sizeof(E) <= 8 ? 4 : 2;
    static_assert(LANES <= 32, "a slab is for one warp");
    using Steps = Vector<E, WIDTH>;
    const DeviceMatrix<S>&A = task.A, &B = task.witness.transposed;
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

template <class S, int BM, int BN, int BK, int TM, int TN, int STAGES, int HELD, int UNROLLED, Access A_ACCESS, Access B_ACCESS, Lookup LOOKUP, int COUNT>
__device__ __forceinline__ void multiply_tile(const Products<S, COUNT>& products) {
  using E = typename S::Element;
  using Layout = StageLayout<S, BM, BN, BK>;
  constexpr int V = Layout::V, THREADS = (BM / TM) * (BN / TN);
  constexpr int DOWN = BM / TM, ACROSS = BN / (TN / V);
  constexpr int STEPS = BK * S::lanes;  // of a slice
  constexpr int SLAB = slab_of<BK>(LOOKUP), SLABS = BK / SLAB;
  static_assert(TN % V == 0 && BK % V == 0 && HELD % S::steps == 0 && UNROLLED % (2 * HELD) == 0 && BK % UNROLLED == 0, "tile");
  static_assert(SLAB % HELD == 0 && (UNROLLED % SLAB == 0 || SLAB % UNROLLED == 0), "slabs end where steps are written out");
  if (!products.predicate.holds()) return;
  extern __shared__ __align__(16) char shared[];
  E* const stages = reinterpret_cast<E*>(shared);

  const Task<S, BM, BN, TM, TN> task(products);
  using StagerA = Stager<S, BM, BK, Layout::a_row, THREADS, true, A_ACCESS>;
  using StagerB = Stager<S, BK, BN, BN, THREADS, false, B_ACCESS>;
  StagerA stage_a(task.A, stages, task.top, 0, task.m, task.thread);
  StagerB stage_b(task.B, stages + Layout::b_begin, 0, task.left, task.n, task.thread);
  const int from_a = kept(task.row * Layout::a_row), from_b = kept(Layout::b_begin + task.column);
  const int whole = task.k / STEPS;  // slices
  auto stage = [&](int slice, int buffer) {
    if (slice < whole) {
      stage_a.stage(buffer);
      stage_b.stage(buffer);
    }
    commit_copies();
  };
  // Waits for the slice after the last STAGES - 2 staged ones.
  auto arrive = [&](int buffer) {
    wait_for_copies<STAGES - 2>();
    stage_b.arrive(stages + buffer + Layout::b_begin);
  };
  Fragments<S, HELD, TM, TN> fragments[2];
  auto load = [&](int which, int buffer, int k) {
    fragments[which].template load<Layout::a_row, DOWN, BN, ACROSS>(stages + buffer + from_a + k, stages + buffer + from_b + k * BN);
  };

  Accumulators<S, TM, TN, LOOKUP != Lookup::none> accumulators;
#pragma unroll
  for (int slice = 0; slice < STAGES - 1; slice++) stage(slice, slice * Layout::size);
  if constexpr (LOOKUP != Lookup::none) begin_with(accumulators, task);
  arrive(0);
  __syncthreads();
  load(0, 0, 0);
  int reading = 0, writing = (STAGES - 1) * Layout::size;
  for (int slice = 0; slice < whole; slice++) {
    const int next = reading == (STAGES - 1) * Layout::size ? 0 : reading + Layout::size;
    stage(slice + STAGES - 1, writing);
#pragma unroll 1
    for (int first = 0; first < BK; first += UNROLLED) {
      if (SLAB > UNROLLED && first % SLAB == 0) accumulators.begin();
      const bool last = first + UNROLLED == BK;
#pragma unroll
      for (int k = 0; k < UNROLLED; k += HELD) {
        const int which = k / HELD % 2;
        if (last && k == UNROLLED / 2) arrive(next);
        const bool turn = last && k + HELD == UNROLLED;  // to the next slice
        if (turn) __syncthreads();
        load(1 - which, turn ? next : reading, turn ? 0 : first + k + HELD);
        if (SLAB <= UNROLLED && k % SLAB == 0) accumulators.begin();
        fragments[which].add_to(accumulators.total);
        if (SLAB <= UNROLLED && (k + HELD) % SLAB == 0) accumulators.end(slice * SLABS + (first + k) / SLAB);
      }
      if (SLAB > UNROLLED && (first + UNROLLED) % SLAB == 0) accumulators.end(slice * SLABS + first / SLAB);
    }
    writing = reading;
    reading = next;
  }

  const Task<S, BM, BN, TM, TN> same(products);
  if (const int rest = same.k - whole * STEPS) {
    __syncthreads();
    StagerA(same.A, stages + reading, same.top, whole * STEPS, same.m, same.thread).stage_rest(stages + reading, rest);
    E* const rows_of_b = stages + reading + Layout::b_begin;
    StagerB(same.B, rows_of_b, whole * STEPS, same.left, same.n, same.thread).stage_rest(rows_of_b, rest);
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first * S::lanes < rest; first += SLAB) {
      accumulators.begin();
#pragma unroll 1
      for (int k = first; k < first + SLAB && k * S::lanes < rest; k++) {
        const E *a = stages + reading + from_a + k, *b = stages + reading + from_b + k * BN;
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
          for (int j = 0; j < TN; j++) accumulate_one<S>(accumulators.total[i][j], a[i * DOWN * Layout::a_row], b[j / V * ACROSS + j % V]);
      }
      accumulators.end(whole * SLABS + first / SLAB);
    }
  }

  if constexpr (LOOKUP == Lookup::none) {
    store(accumulators, same);
  } else {
    auto* const list = reinterpret_cast<unsigned*>(LOOKUP == Lookup::shared ? stages + STAGES * Layout::size : stages);
    if (LOOKUP == Lookup::global) __syncthreads();
    const Improved<S, BM, BN, TM, TN> improved(accumulators, list, same);
    if constexpr (LOOKUP == Lookup::shared)
      improved.template look_up_in_shared<Layout, BK, SLAB>(stages, same);
    else
      improved.template look_up_in_global<SLAB, A_ACCESS == Access::vectors>(same);
  }
}

// The reduction of split-K: C <- C + P_0 + P_1 + ..., without C if `fresh`, for m x n elements and a batch of `count` parts.
template <class S> __device__ __forceinline__ void add_parts(DeviceMatrix<S> C, DeviceMatrix<S> P, int m, int n, int count, bool fresh, LaunchPredicate predicate) {
  if (!predicate.holds()) return;
  const long long e = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  const int r = int(e / n), c = int(e % n);
  if (r >= m) return;
  auto sum = fresh ? S::zero() : S::get(C.pointers, C.at(r, c));
#pragma unroll 4
  for (int part = 0; part < count; part++) sum = S::add(sum, S::get(P.pointers, P.at(r, c) + part * P.batch));
  S::put(C.pointers, C.at(r, c), sum);
}
