// C <- C + A x B over a semiring S (+ and x stand for its operations), or C <- A x B.
//
// A block computes a tile of BM x BN elements of C, a thread TM x TN of them in registers. Slices of BK columns of A and rows of B are
// staged through STAGES buffers in shared memory by asynchronous copies. Within a warp, 4 x 8 threads share the operands; a thread's
// rows lie BM / TM apart, and its columns are vectors that lie BN / (TN / V) apart, so that no two lanes meet in a bank. While a thread
// works on the operands of HELD steps it loads the next; UNROLLED steps are written out, which the instruction cache has to hold.
//
// With a witness, sums begin with C, one comparison a slab of steps tells which slab improved them last, and at the end the steps of that
// slab are looked through once more for the lowest k that gives the sum: in shared memory, if all slices are still there.
#pragma once

#include "pairs.cuh"
#include "products.cuh"
#include "results.cuh"
#include "slices.cuh"
#include "sums.cuh"

template <class S, int BM, int BN, int BK, int TM, int TN, int STAGES, int HELD, int UNROLLED, Access A_ACCESS, Access B_ACCESS, Search SEARCH, int COUNT>
__device__ __forceinline__ void multiply_tile(const Products<S, COUNT>& products) {
  using E = typename S::Element;
  using Slice = Slices<S, BM, BN, BK>;
  constexpr int V = Slice::V, THREADS = (BM / TM) * (BN / TN);
  constexpr int DOWN = BM / TM, ACROSS = BN / (TN / V);
  constexpr int STEPS = BK * S::lanes;  // of a slice
  constexpr int SLAB = slab_of<BK>(SEARCH), SLABS = BK / SLAB;
  static_assert(TN % V == 0 && BK % V == 0 && HELD % S::steps == 0 && UNROLLED % (2 * HELD) == 0 && BK % UNROLLED == 0, "tile");
  static_assert(SLAB % HELD == 0 && (UNROLLED % SLAB == 0 || SLAB % UNROLLED == 0), "slabs end where steps are written out");
  if (!products.turn.comes()) return;
  extern __shared__ __align__(16) char shared[];
  E* const slices = reinterpret_cast<E*>(shared);

  const Task<S, BM, BN, TM, TN> task(products);
  using StagerA = Stager<S, BM, BK, Slice::a_row, THREADS, true, A_ACCESS>;
  using StagerB = Stager<S, BK, BN, BN, THREADS, false, B_ACCESS>;
  StagerA stage_a(task.A, slices, task.top, 0, task.m, task.thread);
  StagerB stage_b(task.B, slices + Slice::b_begin, 0, task.left, task.n, task.thread);
  const int from_a = kept(task.row * Slice::a_row), from_b = kept(Slice::b_begin + task.column);
  const int whole = task.k / STEPS;  // slices
  auto stage = [&](int slice, int buffer) {
    if (slice < whole) {
      stage_a.stage(buffer);
      stage_b.stage(buffer);
    }
    commit_copies();
  };
  // Waits for the slice after the latest STAGES - 2.
  auto settle = [&](int buffer) {
    wait_for_copies<STAGES - 2>();
    stage_b.settle(slices + buffer + Slice::b_begin);
  };
  Operands<S, HELD, TM, TN> operands[2];
  auto load = [&](int which, int buffer, int k) {
    operands[which].template load<Slice::a_row, DOWN, BN, ACROSS>(slices + buffer + from_a + k, slices + buffer + from_b + k * BN);
  };

  Sums<S, TM, TN, SEARCH != Search::none> sums;
#pragma unroll
  for (int slice = 0; slice < STAGES - 1; slice++) stage(slice, slice * Slice::size);
  if constexpr (SEARCH != Search::none) begin_with(sums, task);
  settle(0);
  __syncthreads();
  load(0, 0, 0);
  int reading = 0, writing = (STAGES - 1) * Slice::size;
  for (int slice = 0; slice < whole; slice++) {
    const int next = reading == (STAGES - 1) * Slice::size ? 0 : reading + Slice::size;
    stage(slice + STAGES - 1, writing);
#pragma unroll 1
    for (int first = 0; first < BK; first += UNROLLED) {
      if (SLAB > UNROLLED && first % SLAB == 0) sums.begin();
      const bool last = first + UNROLLED == BK;
#pragma unroll
      for (int k = 0; k < UNROLLED; k += HELD) {
        const int which = k / HELD % 2;
        if (last && k == UNROLLED / 2) settle(next);
        const bool turn = last && k + HELD == UNROLLED;  // to the next slice
        if (turn) __syncthreads();
        load(1 - which, turn ? next : reading, turn ? 0 : first + k + HELD);
        if (SLAB <= UNROLLED && k % SLAB == 0) sums.begin();
        operands[which].add_to(sums.total);
        if (SLAB <= UNROLLED && (k + HELD) % SLAB == 0) sums.end(slice * SLABS + (first + k) / SLAB);
      }
      if (SLAB > UNROLLED && (first + UNROLLED) % SLAB == 0) sums.end(slice * SLABS + first / SLAB);
    }
    writing = reading;
    reading = next;
  }

  const Task<S, BM, BN, TM, TN> same(products);
  if (const int rest = same.k - whole * STEPS) {
    __syncthreads();
    StagerA(same.A, slices + reading, same.top, whole * STEPS, same.m, same.thread).stage_rest(slices + reading, rest);
    E* const rows_of_b = slices + reading + Slice::b_begin;
    StagerB(same.B, rows_of_b, whole * STEPS, same.left, same.n, same.thread).stage_rest(rows_of_b, rest);
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first * S::lanes < rest; first += SLAB) {
      sums.begin();
#pragma unroll 1
      for (int k = first; k < first + SLAB && k * S::lanes < rest; k++) {
        const E *a = slices + reading + from_a + k, *b = slices + reading + from_b + k * BN;
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
          for (int j = 0; j < TN; j++) take_step<S>(sums.total[i][j], a[i * DOWN * Slice::a_row], b[j / V * ACROSS + j % V]);
      }
      sums.end(whole * SLABS + first / SLAB);
    }
  }

  if constexpr (SEARCH == Search::none) {
    store(sums, same);
  } else {
    auto* const list = reinterpret_cast<unsigned*>(SEARCH == Search::near ? slices + STAGES * Slice::size : slices);
    if (SEARCH == Search::far) __syncthreads();
    const Improved<S, BM, BN, TM, TN> improved(sums, list, same);
    if constexpr (SEARCH == Search::near)
      improved.template search_near<Slice, BK, SLAB>(slices, same);
    else
      improved.template search_far<SLAB, A_ACCESS == Access::vectors>(same);
  }
}
