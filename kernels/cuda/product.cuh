// C <- C + A x B over a semiring S (+ and x stand for its operations), or C <- A x B.
//
// A block computes a tile of BM x BN elements of C, a thread TM x TN of them in registers. Slices of BK columns of A and rows of B are
// staged through STAGES buffers in shared memory by asynchronous copies. Within a warp, 4 x 8 threads share the operands; a thread's
// rows lie BM / TM apart, and its columns are vectors that lie BN / (TN / V) apart, so that no two lanes meet in a bank. While a thread
// works on the operands of HELD steps it loads the next; UNROLLED steps are written out, which the instruction cache has to hold.
//
// With a witness, each slice is summed on its own: one comparison a slice tells which slice won, and at the end the steps of
// that slice are looked through once more for the lowest k that gives the sum.
#pragma once

#include "pairs.cuh"
#include "products.cuh"
#include "results.cuh"
#include "slices.cuh"
#include "sums.cuh"

template <class S, int BM, int BN, int BK, int TM, int TN, int STAGES, int HELD, int UNROLLED, Access A_ACCESS, Access B_ACCESS, bool WITNESS, int COUNT>
__device__ __forceinline__ void multiply_tile(const Products<S, COUNT>& products) {
  using E = typename S::Element;
  using Slice = Slices<S, BM, BN, BK>;
  constexpr int V = Slice::V, THREADS = (BM / TM) * (BN / TN);
  constexpr int DOWN = BM / TM, ACROSS = BN / (TN / V);
  constexpr int STEPS = BK * S::lanes;  // of a slice
  static_assert(TN % V == 0 && BK % V == 0 && HELD % S::steps == 0 && UNROLLED % (2 * HELD) == 0 && BK % UNROLLED == 0, "tile");
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

  Sums<S, TM, TN, WITNESS> sums;
#pragma unroll
  for (int slice = 0; slice < STAGES - 1; slice++) stage(slice, slice * Slice::size);
  settle(0);
  __syncthreads();
  load(0, 0, 0);
  int reading = 0, writing = (STAGES - 1) * Slice::size;
  for (int slice = 0; slice < whole; slice++) {
    const int next = reading == (STAGES - 1) * Slice::size ? 0 : reading + Slice::size;
    stage(slice + STAGES - 1, writing);
    sums.begin();
#pragma unroll 1
    for (int first = 0; first < BK; first += UNROLLED) {
      const bool last = first + UNROLLED == BK;
#pragma unroll
      for (int k = 0; k < UNROLLED; k += HELD) {
        const int which = k / HELD % 2;
        if (last && k == UNROLLED / 2) settle(next);
        const bool turn = last && k + HELD == UNROLLED;  // to the next slice
        if (turn) __syncthreads();
        load(1 - which, turn ? next : reading, turn ? 0 : first + k + HELD);
        operands[which].add_to(sums.part());
      }
    }
    sums.end(slice);
    writing = reading;
    reading = next;
  }

  const Task<S, BM, BN, TM, TN> same(products);
  if (const int rest = same.k - whole * STEPS) {
    __syncthreads();
    StagerA(same.A, slices, same.top, whole * STEPS, same.m, same.thread).stage_rest(slices, rest);
    StagerB(same.B, slices + Slice::b_begin, whole * STEPS, same.left, same.n, same.thread).stage_rest(slices + Slice::b_begin, rest);
    __syncthreads();
    sums.begin();
    auto& part = sums.part();
#pragma unroll 1
    for (int k = 0; k * S::lanes < rest; k++) {
      const E *a = slices + from_a + k, *b = slices + from_b + k * BN;
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) take_step<S>(part[i][j], a[i * DOWN * Slice::a_row], b[j / V * ACROSS + j % V]);
    }
    sums.end(whole);
  }

  if constexpr (WITNESS)
    store_with_witness<A_ACCESS == Access::vectors, BK>(sums, slices, same, whole);
  else
    store(sums, same);
}
