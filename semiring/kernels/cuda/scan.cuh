// Scans: vectors through a long product of matrices, v <- (v x A) x w at each step, or backward v <- A x (w x v). Either may then add a
// vector u, as the adjoint of a scan does.
//
// A thread block has a sequence. The vector lies in shared memory, in two alternating buffers: a step needs one barrier. PARTS neighbouring
// lanes share the sum of a new entry: each lane adds consecutive terms, TERMS at a time. A matrix that is the same in all steps is HELD in
// registers if those have room for a whole part; otherwise the next terms are prefetched during the additions.
//
// S is the semiring as `summing_structs` writes it: elements are encoded for products, and decoded for the caller.
#pragma once

#include "sums.cuh"

template <class S> struct Sequence { SEQUENCE_FIELDS };
template <class S> struct Scan { SCAN_FIELDS };

// Prefetch distances in steps, of weights and of matrices, and the most bytes of a matrix that is prefetched.
constexpr int WEIGHTS_AHEAD = 16, MATRICES_AHEAD = 2, ASKED_BYTES = 1 << 16;

template <class S, class Sum, int PARTS, int TERMS, bool HELD, bool BACKWARD, bool WEIGHTED, bool WITNESS, bool ADDED>
__device__ __forceinline__ void scan_sequence(const Scan<S>& scan) {
  using E = typename S::Element;
  constexpr int V = Vector<E>::length;
  constexpr bool ONE_WARP = HELD && PARTS * PARTS * TERMS <= 32;
  extern __shared__ __align__(16) char memory[];
  const Sequence<S> sequence = scan.sequences[blockIdx.x];
  const long long steps = sequence.steps, threshold = scan.threshold;
  const int states = scan.states, length = HELD ? TERMS : int(scan.length), chunks = length / TERMS;
  const int column = threadIdx.x / PARTS, part = threadIdx.x % PARTS, first = part * length;
  const bool there = column < states, writes = there && part == 0;
  // Each part begins in another bank.
  const int pitch = (length / V | 1) * V, place = column / length * pitch + column % length;
  E* const vectors = reinterpret_cast<E*>(memory);

  const auto barrier = [] {
    if constexpr (ONE_WARP)
      __syncwarp();
    else
      __syncthreads();
  };
  const auto times = [&](const E& x, const E& y) { return S::decode(S::mul(S::encode(x), S::encode(y)), threshold); };
  // Small matrices that change are prefetched some steps ahead.
  const bool asks = !HELD && scan.matrix_step != 0 && states * states * int(sizeof(E)) <= ASKED_BYTES;
  const auto load_terms = [&](E(&to)[TERMS], long long step, int chunk) {
    typename S::Pointers from = sequence.matrix;
    const int start = first + chunk * TERMS, here = there ? states - start : 0;
    S::advance(from, step * scan.matrix_step + column * scan.matrix_sums + start * scan.matrix_terms);
    if (asks && step + MATRICES_AHEAD < steps)
#pragma unroll
      for (int q = 0; q < TERMS; q++)
        if (q < here) S::prefetch(from, q * scan.matrix_terms + MATRICES_AHEAD * scan.matrix_step);
#pragma unroll
    for (int q = 0; q < TERMS; q++) {
      to[q] = q < here ? S::encode(S::get(from, 0)) : S::zero();
      S::advance(from, scan.matrix_terms);
    }
  };
  E weight = S::zero();
  const auto load_weight = [&](long long step) {
    if (!WEIGHTED || !there || step >= steps) return;
    const long long at = step * scan.weight_step + column * scan.weight_stride;
    weight = S::get(sequence.weights, at);
    if (part == 0 && step + WEIGHTS_AHEAD < steps) S::prefetch(sequence.weights, at + WEIGHTS_AHEAD * scan.weight_step);
  };

  E more = S::zero();
  const auto load_added = [&](long long step) {
    if (!ADDED || !there || step >= steps) return;
    const long long at = (step + 1) * scan.added_step + column * scan.added_stride;
    more = S::get(sequence.added, at);
    if (part == 0 && step + WEIGHTS_AHEAD < steps) S::prefetch(sequence.added, at + WEIGHTS_AHEAD * scan.added_step);
  };

  for (int i = threadIdx.x; i < 2 * PARTS * pitch; i += blockDim.x) vectors[i] = S::zero();
  E x = there ? S::get(sequence.initial, column * scan.initial_stride) : S::zero();
  typename S::Pointers values = sequence.values;
  int* witness = sequence.witness;
  if (writes) S::put(values, column, x);
  if (WITNESS && writes) witness[column] = -1;
  E terms[TERMS];
  if (steps > 0) load_terms(terms, 0, 0);
  load_weight(0);
  load_added(0);
  barrier();

  for (long long t = 0; t < steps; t++) {
    E* const vector = vectors + (t & 1) * PARTS * pitch;
    if (BACKWARD && WEIGHTED) {
      const E weighed = times(weight, x);
      load_weight(t + 1);
      x = weighed;
    }
    if (writes) vector[place] = S::encode(x);
    barrier();
    Sum sum;
    for (int c = 0; c < (HELD ? 1 : chunks); c++) {
      E next[HELD ? 1 : TERMS];
      if constexpr (!HELD) {
        const bool ends = c + 1 == chunks;
        if (!ends || t + 1 < steps) load_terms(next, ends ? t + 1 : t, ends ? 0 : c + 1);
      }
      E entries[TERMS];
#pragma unroll
      for (int q = 0; q < TERMS; q += V) {
        const auto some = *reinterpret_cast<const Vector<E>*>(vector + part * pitch + c * TERMS + q);
#pragma unroll
        for (int e = 0; e < V; e++) entries[q + e] = some.element[e];
      }
      if constexpr (BACKWARD)
        sum.template add<TERMS>(terms, entries, first + c * TERMS, threshold);
      else
        sum.template add<TERMS>(entries, terms, first + c * TERMS, threshold);
      if constexpr (!HELD) {
#pragma unroll
        for (int q = 0; q < TERMS; q++) terms[q] = next[q];
      }
    }
    sum.template combine<PARTS>(part);
    x = S::decode(sum.result(), threshold);
    if (!BACKWARD && WEIGHTED) {
      x = times(x, weight);
      load_weight(t + 1);
    }
    if (ADDED) {
      x = S::decode(S::add(S::encode(x), S::encode(more)), threshold);
      load_added(t + 1);
    }
    S::advance(values, scan.value_step);
    if (writes) S::put(values, column, x);
    if constexpr (WITNESS) {
      witness += BACKWARD ? -states : states;
      if (writes) witness[column] = sum.winner;
    }
  }
  if constexpr (!WITNESS) return;

  // Finds the best entry of the last vector, the first one in a tie.
  E* const vector = vectors + (steps & 1) * PARTS * pitch;
  if (writes) vector[place] = S::encode(x);
  __syncthreads();
  Selection<S> best;
  if (threadIdx.x < 32) {
    const int share = (states + 31) / 32, start = threadIdx.x * share;
    for (int j = start; j < min(states, start + share); j++) best.consider(vector[j / length * pitch + j % length], j);
    best.template combine<32>(threadIdx.x);
  }
  __syncthreads();

  // Traces the best path back to the first vector, some rows of winners at a time; rows are stored in the order of time.
  int* const rows = reinterpret_cast<int*>(memory);
  int state = best.winner;
  for (long long last = steps; last > 0; last -= scan.rows) {
    const int count = int(min(scan.rows, last));
    const int* const from = sequence.witness + (BACKWARD ? -last : last - count + 1) * states;
#pragma unroll 4
    for (int i = threadIdx.x; i < count * states; i += blockDim.x) rows[i] = from[i];
    __syncthreads();
    if (threadIdx.x == 0)
      for (int r = 0; r < count; r++) {
        sequence.states[BACKWARD ? r - last : last - r] = state;
        if (state >= 0) state = rows[(BACKWARD ? r : count - 1 - r) * states + state];
      }
    __syncthreads();
  }
  if (threadIdx.x == 0) sequence.states[0] = state;
}
