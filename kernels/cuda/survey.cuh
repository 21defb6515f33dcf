// What one pass over numbers tells: the least and the greatest finite one, and what else there is.
#pragma once

#include "arithmetic.cuh"

enum Seen : unsigned { FINITE = 1, POSITIVE_INFINITY = 2, NEGATIVE_INFINITY = 4, NOT_A_NUMBER = 8, NEGATIVE_ZERO = 16 };

template <int BYTES> struct WordOf { using type = uint32; };
template <> struct WordOf<8> { using type = uint64; };
template <class T> using Word = typename WordOf<sizeof(T)>::type;

// A number's place: a word that sorts as the numbers do. Floats are told from their bits, so that no subnormal passes for 0.
template <class T> __device__ __forceinline__ Word<T> place(T x) {
  constexpr Word<T> top = Word<T>(1) << (8 * sizeof(Word<T>) - 1);
  return T(-1) < T(0) ? Word<T>(x) ^ top : Word<T>(x);
}
template <> __device__ __forceinline__ uint32 place(float x) {
  const int32 bits = __float_as_int(x);
  return bits < 0 ? ~uint32(bits) : uint32(bits) ^ 0x80000000u;
}
template <> __device__ __forceinline__ uint64 place(double x) {
  const int64 bits = __double_as_longlong(x);
  return bits < 0 ? ~uint64(bits) : uint64(bits) ^ 0x8000000000000000ull;
}

// LOWEST and HIGHEST: whether the least and the greatest value of an integer type stand for an infinity.
template <class T, bool LOWEST, bool HIGHEST> __device__ __forceinline__ unsigned kind(T x) {
  constexpr bool with_sign = T(-1) < T(0);
  constexpr T lowest = with_sign ? T(uint64(1) << (8 * sizeof(T) - 1)) : T(0), highest = T(~lowest);
  return HIGHEST && x == highest ? POSITIVE_INFINITY : LOWEST && x == lowest ? NEGATIVE_INFINITY : FINITE;
}
template <class T> __device__ __forceinline__ unsigned kind_of_float(T x) {
  const Word<T> zero = place(T(0)), infinity = place(T(__int_as_float(0x7f800000))), x_place = place(x);
  if (x_place > infinity || x_place < ~infinity) return NOT_A_NUMBER;
  return x_place == infinity ? POSITIVE_INFINITY : x_place == ~infinity ? NEGATIVE_INFINITY : x_place == zero - 1 ? FINITE | NEGATIVE_ZERO : FINITE;
}
template <> __device__ __forceinline__ unsigned kind<float, true, true>(float x) { return kind_of_float(x); }
template <> __device__ __forceinline__ unsigned kind<double, true, true>(double x) { return kind_of_float(x); }

// Numbers that a thread has on the way from memory at a time.
constexpr int TOGETHER = 8;

// found <- the greatest place, the greatest complement of a place, and all kinds, of numbers that begin with zeros in `found`.
template <class T, bool LOWEST, bool HIGHEST, class At> __device__ __forceinline__ void survey(const T* numbers, int64 size, At at, uint64* found) {
  __shared__ Word<T> greatest[2];
  __shared__ unsigned kinds;
  if (threadIdx.x == 0) greatest[0] = greatest[1] = kinds = 0;
  __syncthreads();

  Word<T> high = 0, low = 0;
  unsigned all = 0;
  const int64 threads = int64(gridDim.x) * blockDim.x;
  const auto look = [&](T x) {
    const unsigned own = kind<T, LOWEST, HIGHEST>(x);
    all |= own;
    if (own & FINITE) {
      high = maximum(high, place(x));
      low = maximum(low, Word<T>(~place(x)));
    }
  };
  int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + (TOGETHER - 1) * threads < size; i += TOGETHER * threads) {
    T x[TOGETHER];
#pragma unroll
    for (int t = 0; t < TOGETHER; t++) x[t] = numbers[at(i + t * threads)];
#pragma unroll
    for (int t = 0; t < TOGETHER; t++) look(x[t]);
  }
  for (; i < size; i += threads) look(numbers[at(i)]);
#pragma unroll
  for (int apart = 16; apart; apart /= 2) {
    high = maximum(high, __shfl_xor_sync(0xffffffff, high, apart));
    low = maximum(low, __shfl_xor_sync(0xffffffff, low, apart));
    all |= __shfl_xor_sync(0xffffffff, all, apart);
  }
  if (threadIdx.x % 32 == 0) {
    atomicMax(greatest, high);
    atomicMax(greatest + 1, low);
    atomicOr(&kinds, all);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicMax(found, uint64(greatest[0]));
    atomicMax(found + 1, uint64(greatest[1]));
    atomicOr(found + 2, uint64(kinds));
  }
}
