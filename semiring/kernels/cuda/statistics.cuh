// Value statistics: the least and the greatest finite number of arrays, the kinds of other numbers, and counts of 0.
#pragma once

#include "arithmetic.cuh"

// Kinds of numbers: finite; +oo or the highest integer; -oo or the lowest integer; NaN.
enum Kind : unsigned { FINITE = 1, HIGHEST = 2, LOWEST = 4, NOT_A_NUMBER = 8 };

template <int BYTES> struct WordOf { using type = uint32; };
template <> struct WordOf<8> { using type = uint64; };
template <class T> using Word = typename WordOf<sizeof(T)>::type;

// Maps a number to a word of the same order. Floats are compared by bits, so that subnormals differ from 0.
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

template <class T> constexpr bool is_float = T(0.5) != T(0);

// +oo, or the highest integer.
template <class T> __device__ __forceinline__ T highest() {
  if constexpr (is_float<T>)
    return T(__int_as_float(0x7f800000));
  else
    return T(-1) < T(0) ? T(~(uint64(1) << (8 * sizeof(T) - 1))) : T(~T(0));
}

// Tests for -0.0, whose place is just below that of 0.0; integers have no -0.
template <class T> __device__ __forceinline__ bool is_negative_zero(T x) { return is_float<T> && place(x) == place(T(0)) - 1; }

// Maps a place back to its number, in the host's 8 bytes: a double, or an integer.
template <class T> __device__ __forceinline__ uint64 number_at(Word<T> place) {
  constexpr Word<T> top = Word<T>(1) << (8 * sizeof(Word<T>) - 1);
  if constexpr (T(-1) > T(0)) return place;
  return sizeof(Word<T>) == 4 ? uint64(int64(int32(uint32(place ^ top)))) : uint64(place ^ top);
}
template <> __device__ __forceinline__ uint64 number_at<float>(uint32 place) {
  return __double_as_longlong(double(__int_as_float(place & 0x80000000u ? place ^ 0x80000000u : ~place)));
}
template <> __device__ __forceinline__ uint64 number_at<double>(uint64 place) {
  return place & 0x8000000000000000ull ? place ^ 0x8000000000000000ull : ~place;
}

// Partial results of an array: the greatest place, the greatest complement of a place, all kinds, and the counts of 0 and of -0.0.
struct Partial { uint64 high, low, kinds, zeros, negative_zeros; };

// The host's results of an array; `least` and `greatest` are finite.
struct Result { uint64 least, greatest, kinds, zeros, negative_zeros; };

template <class T> struct Numbers { NUMBERS_FIELDS };
template <class T, int COUNT> struct Given { GIVEN_FIELDS };

// Contiguous numbers that one access reads.
template <class T, int COUNT> struct alignas(sizeof(T) * COUNT) Group { T numbers[COUNT]; };

// What a thread has seen of an array.
template <class T> struct Seen {
  Word<T> greatest = 0, least = ~Word<T>(0);
  bool highest_seen = false, lowest_seen = false, nan_seen = false;
  unsigned zeros = 0, negative_zeros = 0;

  __device__ __forceinline__ void add(T x) {
    constexpr Word<T> integers = ~Word<T>(0) >> 8 * (sizeof(Word<T>) - sizeof(T));
    const Word<T> top = place(highest<T>()), bottom = is_float<T> ? ~top : top - integers, here = place(x);
    if (Word<T>(here - bottom - 1) < Word<T>(top - bottom - 1)) {
      greatest = maximum(greatest, here);
      least = minimum(least, here);
    }
    highest_seen |= here == top;
    lowest_seen |= here == bottom;
    if (is_float<T>) nan_seen |= Word<T>(here - bottom) > Word<T>(top - bottom);
    zeros += here == place(T(0));
    negative_zeros += is_negative_zero(x);
  }

  __device__ __forceinline__ unsigned kinds() const {
    return (least <= greatest) * FINITE + highest_seen * HIGHEST + lowest_seen * LOWEST + nan_seen * NOT_A_NUMBER;
  }

  template <int COUNT> __device__ __forceinline__ void add(const Group<T, COUNT>& group) {
#pragma unroll
    for (int c = 0; c < COUNT; c++) add(group.numbers[c]);
  }
};

// Reduces the array of a block's row of the grid into `partial`, which begins with zeros.
// Loops are not unrolled further, because the first call of a process waits for this kernel's compilation.
template <class T> __device__ __forceinline__ void reduce_array(const Numbers<T>& numbers, Partial* partial) {
  const int64 first = int64(blockIdx.x) * blockDim.x + threadIdx.x, threads = int64(gridDim.x) * blockDim.x, size = numbers.size;
  if (first - threadIdx.x >= size) return;
  __shared__ Word<T> greatest[2];
  __shared__ unsigned kinds;
  __shared__ uint64 counts[2];
  if (threadIdx.x == 0) greatest[0] = greatest[1] = kinds = counts[0] = counts[1] = 0;
  __syncthreads();

  constexpr int SIDE_BY_SIDE = 16 / sizeof(T), TOGETHER = 4;  // numbers that one access reads, and accesses in flight
  const T* start = numbers.start;
  Seen<T> seen;
  if (numbers.n == 0 && reinterpret_cast<uint64>(start) % 16 == 0) {
    const auto groups = reinterpret_cast<const Group<T, SIDE_BY_SIDE>*>(start);
    const int64 whole = size / SIDE_BY_SIDE, rest = whole * SIDE_BY_SIDE + first;
    int64 i = first;
#pragma unroll 1
    for (; i + (TOGETHER - 1) * threads < whole; i += TOGETHER * threads) {
      Group<T, SIDE_BY_SIDE> group[TOGETHER];
#pragma unroll
      for (int t = 0; t < TOGETHER; t++) group[t] = groups[i + t * threads];
#pragma unroll
      for (int t = 0; t < TOGETHER; t++) seen.add(group[t]);
    }
#pragma unroll 1
    for (; i < whole; i += threads) seen.add(groups[i]);
    if (rest < size) seen.add(start[rest]);
  } else {
    const int64 m = numbers.n ? numbers.m : 1, n = numbers.n ? numbers.n : size, column = numbers.n ? numbers.column : 1;
    const auto place_of = [&](int64 number, int64& r, int64& c) {  // in row r and column c of its matrix
      c = number % n, r = number / n % m;
      return number / n / m * numbers.apart + r * numbers.row + c * column;
    };
    int64 r, c, down, right, at = place_of(first, r, c), step = place_of(threads, down, right);
#pragma unroll 2
    for (int64 i = first; i < size; i += threads) {
      seen.add(start[at]);
      at += step, r += down, c += right;
      if (c >= n) c -= n, r++, at += numbers.row - n * column;
      if (r >= m) r -= m, at += numbers.apart - m * numbers.row;
    }
  }

  Word<T> high = seen.greatest, low = ~seen.least;
  unsigned all = seen.kinds(), zeros = seen.zeros, negative_zeros = seen.negative_zeros;
#pragma unroll
  for (int apart = 16; apart; apart /= 2) {
    high = maximum(high, __shfl_xor_sync(0xffffffff, high, apart));
    low = maximum(low, __shfl_xor_sync(0xffffffff, low, apart));
    all |= __shfl_xor_sync(0xffffffff, all, apart);
    zeros += __shfl_xor_sync(0xffffffff, zeros, apart);
    negative_zeros += __shfl_xor_sync(0xffffffff, negative_zeros, apart);
  }
  if (threadIdx.x % 32 == 0) {
    atomicMax(greatest, high);
    atomicMax(greatest + 1, low);
    atomicOr(&kinds, all);
    atomicAdd(counts, uint64(zeros));
    atomicAdd(counts + 1, uint64(negative_zeros));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicMax(&partial->high, uint64(greatest[0]));
    atomicMax(&partial->low, uint64(greatest[1]));
    atomicOr(&partial->kinds, uint64(kinds));
    if (counts[0]) atomicAdd(&partial->zeros, counts[0]);
    if (counts[1]) atomicAdd(&partial->negative_zeros, counts[1]);
  }
}

// Reduces all arrays, one per row of the grid.
template <class T, int COUNT> __device__ __forceinline__ void statistics(const Given<T, COUNT>& given) {
  reduce_array(given.arrays[blockIdx.y], given.partials + blockIdx.y);
  __shared__ bool last;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(given.blocks, 1u) == gridDim.x * gridDim.y - 1;
  }
  __syncthreads();
  if (!last) return;
  if (threadIdx.x < gridDim.y) {
    __threadfence();
    volatile Partial& partial = given.partials[threadIdx.x];
    const bool finite = partial.kinds & FINITE;
    const Word<T> least = ~partial.low;
    if (given.signs != nullptr && finite && least < place(T(0))) *given.signs = 1;
    if (given.results != nullptr) {
      Result& result = given.results[threadIdx.x];
      result.least = finite ? number_at<T>(least) : 0;
      result.greatest = finite ? number_at<T>(Word<T>(partial.high)) : 0;
      result.kinds = partial.kinds;
      result.zeros = partial.zeros;
      result.negative_zeros = partial.negative_zeros;
    }
    partial.high = partial.low = partial.kinds = partial.zeros = partial.negative_zeros = 0;
    *given.blocks = 0;
    __threadfence_system();
  }
  __syncthreads();
  if (threadIdx.x == 0 && given.finished != nullptr) *given.finished = given.number;
}
