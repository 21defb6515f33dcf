// What a thread of a product holds in registers: operands of some steps, and the sums.
#pragma once

#include "matrix.cuh"

// What a thread needs of A and B for STEPS steps.
template <class S, int STEPS, int TM, int TN> struct Operands {
  using E = typename S::Element;
  static constexpr int V = Vector<E>::length, LINE = STEPS < V ? STEPS : V;
  Vector<E, LINE> a[TM][STEPS / LINE];
  Vector<E> b[STEPS][TN / V];

  // From the thread's first row of A and first column of B.
  template <int A_ROW, int DOWN, int B_ROW, int ACROSS> __device__ __forceinline__ void load(const E* from_a, const E* from_b) {
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int d = 0; d < STEPS / LINE; d++) a[i][d] = *reinterpret_cast<const Vector<E, LINE>*>(from_a + i * DOWN * A_ROW + d * LINE);
#pragma unroll
    for (int p = 0; p < STEPS; p++)
#pragma unroll
      for (int j = 0; j < TN / V; j++) b[p][j] = *reinterpret_cast<const Vector<E>*>(from_b + p * B_ROW + j * ACROSS);
  }

  __device__ __forceinline__ void add_to(E (&sum)[TM][TN]) const {
#pragma unroll
    for (int q = 0; q < STEPS; q += S::steps)
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) {
          E left[S::steps], right[S::steps];
#pragma unroll
          for (int p = 0; p < S::steps; p++) {
            left[p] = a[i][(q + p) / LINE].element[(q + p) % LINE];
            right[p] = b[q + p][j / V].element[j % V];
          }
          S::accumulate(sum[i][j], left, right);
        }
  }
};

template <class E, int TM, int TN> __device__ __forceinline__ void fill(E (&sum)[TM][TN], E value) {
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) sum[i][j] = value;
}

// c <- c + a x b, one step by itself.
template <class S> __device__ __forceinline__ void take_step(typename S::Element& c, typename S::Element a, typename S::Element b) {
  if constexpr (S::steps == 1)
    S::accumulate(c, &a, &b);
  else
    c = S::add(c, S::candidate(a, b));
}

// The sums, which begin with zeros.
template <class S, int TM, int TN, bool WITNESS> struct Sums {
  using E = typename S::Element;
  E total[TM][TN];

  __device__ __forceinline__ Sums() { fill(total, S::zero()); }
  __device__ __forceinline__ void begin() {}
  __device__ __forceinline__ void end(int slab) {}
};

// With a witness they begin with C, and the number of the slab that improved each of them last is beside it, two in a register.
template <class S, int TM, int TN> struct Sums<S, TM, TN, true> {
  using E = typename S::Element;
  static constexpr unsigned NONE = 0xffff;
  E total[TM][TN], before[TM][TN];
  unsigned won[TM][TN / 2];

  __device__ __forceinline__ Sums() {
    fill(total, S::zero());
    fill(won, 0xffffffffu);
  }
  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++) before[i][j] = total[i][j];
  }
  __device__ __forceinline__ void end(int slab) {
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++)
        if (!S::same(total[i][j], before[i][j])) won[i][j / 2] = __byte_perm(won[i][j / 2], slab, j % 2 ? 0x5410 : 0x3254);
  }
  __device__ __forceinline__ unsigned slab(int i, int j) const { return j % 2 ? won[i][j / 2] >> 16 : won[i][j / 2] & NONE; }
};
