// Sums of ordered terms: `add` adds terms to a part; `combine` adds the parts of neighbouring lanes, and `join` a later part, with the
// earlier part on the left.
//
// S is the semiring as `summing_structs` writes it: elements are encoded for products, and decoded for the caller.
#pragma once

#include "arithmetic.cuh"

template <class S> struct Fold {
  static constexpr bool SELECTS = false;
  using E = typename S::Element;
  E total = S::zero();

  template <int N> __device__ __forceinline__ void add(const E* left, const E* right, int, long long) {
#pragma unroll
    for (int q = 0; q < N; q += S::steps) S::accumulate(total, left + q, right + q);
  }
  template <int PARTS> __device__ __forceinline__ void combine(int part) {
#pragma unroll
    for (int bit = 1; bit < PARTS; bit *= 2) {
      const E other = of_other_lane(total, bit);
      total = part & bit ? S::add(other, total) : S::add(total, other);
    }
  }
  template <int PARTS> __device__ __forceinline__ void combine_turns(int part) { combine<PARTS>(part); }
  __device__ __forceinline__ void join(const Fold& later) { total = S::add(total, later.total); }
  __device__ __forceinline__ E result() const { return total; }
};

// A sum where + selects, with the first term that equals the sum, or -1 for zero. If lanes take terms by turns, the lowest number among the
// terms that equal the sum wins.
template <class S> struct Selection {
  static constexpr bool SELECTS = true;
  using E = typename S::Element;
  E total = S::zero();
  int winner = -1;

  __device__ __forceinline__ void consider(const E& x, int number) {
    const E found = S::add(total, x);
    if (!S::same(found, total)) winner = number;
    total = found;
  }
  template <int N> __device__ __forceinline__ void add(const E* left, const E* right, int first, long long threshold) {
#pragma unroll  // a finite element can pull a sum with an infinity back; it then counts as infinite, and never wins
    for (int q = 0; q < N; q++) consider(S::encode(S::decode(S::mul(left[q], right[q]), threshold)), first + q);
  }
  template <int PARTS> __device__ __forceinline__ void combine(int part) {
#pragma unroll
    for (int bit = 1; bit < PARTS; bit *= 2) {
      const E other = of_other_lane(total, bit);
      const int others = __shfl_xor_sync(0xffffffff, winner, bit);
      const E before = part & bit ? other : total, after = part & bit ? total : other, found = S::add(before, after);
      winner = S::same(found, before) == ((part & bit) == 0) ? winner : others;
      total = found;
    }
  }
  template <int PARTS> __device__ __forceinline__ void combine_turns(int) {
#pragma unroll
    for (int bit = 1; bit < PARTS; bit *= 2) {
      const E other = of_other_lane(total, bit);
      const unsigned others = __shfl_xor_sync(0xffffffff, winner, bit), mine = winner;  // unsigned, so that -1 is the highest
      const E found = S::add(total, other);
      winner = S::same(total, other) ? min(mine, others) : S::same(found, total) ? mine : others;
      total = found;
    }
  }
  __device__ __forceinline__ void join(const Selection& later) {
    const E found = S::add(total, later.total);
    if (!S::same(found, total)) winner = later.winner;
    total = found;
  }
  __device__ __forceinline__ E result() const { return total; }
};

// log(sum of exp(s x)) / s over the terms x, as m + log(sum of exp(s (x - m))) / s, where m maximizes s m.
template <class S> struct LogSum {
  static constexpr bool SELECTS = false;
  using E = typename S::Element;
  using T = decltype(E::c0);
  T most = S::zero().c0, total = 0;

  static __device__ __forceinline__ T larger(T x, T y) { return S::scale() > T(0) ? (y > x ? y : x) : (y < x ? y : x); }
  // Returns m, or 0 if m is infinite: then all terms are zero, or one is infinite, and so is the sum.
  static __device__ __forceinline__ T taken_out(T m) { return m - m == T(0) ? m : T(0); }
  // Rescales a total from maximum m to a larger one.
  static __device__ __forceinline__ T rescaled(T total, T m, T larger) {
    return total == T(0) ? T(0) : total * exp(S::scale() * (taken_out(m) - taken_out(larger)));
  }

  template <int N> __device__ __forceinline__ void add(const E* left, const E* right, int, long long) {
    T x[N], top = most;
#pragma unroll
    for (int q = 0; q < N; q++) x[q] = S::mul(left[q], right[q]).c0, top = larger(top, x[q]);
    T sum = rescaled(total, most, top);
    const T m = taken_out(top);
#pragma unroll
    for (int q = 0; q < N; q++) sum += exp(S::scale() * (x[q] - m));
    most = top, total = sum;
  }
  template <int PARTS> __device__ __forceinline__ void combine(int) {
    if constexpr (PARTS == 1) return;
    T top = most;
#pragma unroll
    for (int bit = 1; bit < PARTS; bit *= 2) top = larger(top, __shfl_xor_sync(0xffffffff, top, bit));
    total = rescaled(total, most, top), most = top;
#pragma unroll
    for (int bit = 1; bit < PARTS; bit *= 2) total += __shfl_xor_sync(0xffffffff, total, bit);
  }
  template <int PARTS> __device__ __forceinline__ void combine_turns(int part) { combine<PARTS>(part); }
  __device__ __forceinline__ void join(const LogSum& later) {
    const T top = larger(most, later.most);
    total = rescaled(total, most, top) + rescaled(later.total, later.most, top), most = top;
  }
  __device__ __forceinline__ E result() const { return {taken_out(most) + log(total) * S::inverse_scale()}; }
};
