// Arithmetic of recorded expressions, with Python's and NumPy's semantics where C++ differs; and pairs of 16-bit numbers in one register.
#pragma once

#include "memory.cuh"

// NumPy's names of types.
using int16 = short;
using int32 = int;
using int64 = long long;
using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned int;
using uint64 = unsigned long long;
using float32 = float;
using float64 = double;

template <class T> __device__ __forceinline__ T minimum(T x, T y) { return y < x ? y : x; }
template <class T> __device__ __forceinline__ T maximum(T x, T y) { return y > x ? y : x; }
// Single instructions; a NaN never wins against a number.
template <> __device__ __forceinline__ float minimum(float x, float y) { return fminf(x, y); }
template <> __device__ __forceinline__ float maximum(float x, float y) { return fmaxf(x, y); }

template <class T> __device__ __forceinline__ T magnitude(T x) { return x < T(0) ? T(-x) : x; }
template <> __device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
template <> __device__ __forceinline__ double magnitude(double x) { return fabs(x); }

// Quotients are rounded towards minus infinity, and 0 where the divisor is 0.
template <class T> __device__ __forceinline__ T floor_quotient(T x, T y) {
  if (y == T(0)) return T(0);
  if (T(-1) < T(0) && y == T(-1)) return T(T(0) - x);
  const T quotient = T(x / y), rest = T(x % y);
  return rest != T(0) && (rest < T(0)) != (y < T(0)) ? T(quotient - T(1)) : quotient;
}

template <class T> __device__ __forceinline__ T floor_remainder(T x, T y) {
  if (y == T(0) || (T(-1) < T(0) && y == T(-1))) return T(0);
  const T rest = T(x % y);
  return rest != T(0) && (rest < T(0)) != (y < T(0)) ? T(rest + y) : rest;
}

// Shifts by at least the width leave nothing, or only the sign.
template <class T> __device__ __forceinline__ T shift_left(T x, T y) {
  const bool beyond = y < T(0) || y >= T(8 * sizeof(T));
  return beyond ? T(0) : T(static_cast<unsigned long long>(x) << y);
}

template <class T> __device__ __forceinline__ T shift_right(T x, T y) {
  const bool beyond = y < T(0) || y >= T(8 * sizeof(T));
  return beyond ? (x < T(0) ? T(-1) : T(0)) : T(x >> y);
}

// Infinite integers absorb sums.
template <class T> __device__ __forceinline__ T absorbing_sum(T x, T y, T infinite) {
  return x == infinite || y == infinite ? infinite : T(x + y);
}

// Two accumulators of 16-bit numbers in one register, for even and odd steps, where + is a minimum or a maximum.
// N is the semiring of single numbers: type T in memory, one register each.
template <class N, class T> struct Pairs : N {
  using Element = typename N::Element;
  using Pointers = typename N::Pointers;
  static constexpr int lanes = 2;
  static constexpr bool vectors = true;

  static __device__ __forceinline__ Element pair(Element even, Element odd) { return {int32(__byte_perm(even.c0, odd.c0, 0x5410))}; }

  static __device__ __forceinline__ Element twice(T x) { return pair({x}, {x}); }
  static __device__ __forceinline__ Element zero() { return pair(N::zero(), N::zero()); }
  static __device__ __forceinline__ Element add(Element a, Element b) {
    const Element one = {0};  // of a semiring where x is a sum
    N::accumulate(a, &b, &one);
    return a;
  }

  // Combines the two sums, into both halves; elements of C are stored twice as well.
  static __device__ __forceinline__ Element both(Element x) { return add(x, {int32(__byte_perm(x.c0, 0, 0x1032))}); }
  static __device__ __forceinline__ Element get(const Pointers& p, long long i) { return twice(p.c0[i]); }
  static __device__ __forceinline__ void put(const Pointers& p, long long i, Element x) { p.c0[i] = T(x.c0); }
  static __device__ __forceinline__ Vector<Element> get_vector(const Pointers& p, long long i) {
    const auto numbers = *reinterpret_cast<const Vector<T, 4>*>(p.c0 + i);
    return {twice(numbers.element[0]), twice(numbers.element[1]), twice(numbers.element[2]), twice(numbers.element[3])};
  }
  static __device__ __forceinline__ void put_vector(const Pointers& p, long long i, const Vector<Element>& x) {
    Vector<T, 4> numbers;
#pragma unroll
    for (int q = 0; q < 4; q++) numbers.element[q] = T(x.element[q].c0);
    *reinterpret_cast<Vector<T, 4>*>(p.c0 + i) = numbers;
  }

  // Loads p[i] and p[i + k], as far as `count` allows.
  static __device__ __forceinline__ Element part(const Pointers& p, long long i, long long k, int count) {
    return pair(N::part(p, i, k, count), N::part(p, i + k, k, count - 1));
  }
  static __device__ __forceinline__ void fetch(Shared target, const Pointers& p, long long k, bool there) {
    if (there) shared_object<Element>(target) = pair(N::get(p, 0), N::get(p, k));
  }

  // Turns eight numbers of one row, followed by eight of the next row, into eight pairs.
  static __device__ __forceinline__ void interleave(Element* elements) {
    auto* const vectors = reinterpret_cast<Vector<Element>*>(elements);
    const Vector<Element> even = vectors[0], odd = vectors[1];
#pragma unroll
    for (int v = 0; v < 2; v++) {
      Vector<Element> mixed;
#pragma unroll
      for (int q = 0; q < 4; q++)
        mixed.element[q].c0 = __byte_perm(even.element[2 * v + q / 2].c0, odd.element[2 * v + q / 2].c0, q % 2 ? 0x7632 : 0x5410);
      vectors[v] = mixed;
    }
  }
};
