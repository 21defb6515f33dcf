// C <- C + A x B over a semiring S (+ and x stand for its operations), or C <- A x B.
//
// The main loop. A thread block computes a tile of BM x BN elements of C, and a thread TM x TN of them in registers. Slices of BK columns
// of A and rows of B go through STAGES buffers in shared memory by asynchronous copies (tile.cuh). Within a warp, 4 x 8 threads share
// operands. A thread's rows are BM / TM apart, and its column vectors BN / (TN / V) apart, which avoids bank conflicts. While a thread
// computes with the fragments of HELD steps, the next ones are loaded; UNROLLED steps are unrolled, and must fit the instruction cache.
//
// The epilogue (epilogue.cuh) merges the accumulators with C. With a witness, accumulators begin with C, and one comparison per slab of
// steps finds the last slab that improved each element. The epilogue searches that slab again for the lowest k with the final sum: in
// shared memory if all slices are still there, else in global memory.
#pragma once

#include "arithmetic.cuh"
#include "epilogue.cuh"
#include "tile.cuh"

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
