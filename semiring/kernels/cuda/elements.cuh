// Loops over the elements of strided matrices of one shape, and copies of matrices into contiguous rows.
#pragma once

#include "arithmetic.cuh"

// Calls body(b, i, j) for `count` matrices of m x n elements; neighbouring threads have neighbours in a row.
template <class Body> __device__ __forceinline__ void each_element(int64 count, int64 m, int64 n, Body body) {
  for (int64 b = blockIdx.z; b < count; b += gridDim.z)
    for (int64 i = blockIdx.y; i < m; i += gridDim.y)
      for (int64 j = blockIdx.x * int64(blockDim.x) + threadIdx.x; j < n; j += gridDim.x * int64(blockDim.x)) body(b, i, j);
}

// Copies a batch of matrices into contiguous rows: thread blocks of 32 x 8 threads copy tiles of 32 x 32, reading along the source's denser
// axis.
template <class T>
__device__ __forceinline__ void copy_tiles(const T* source, long long row, long long column, long long apart, T* target, long long pitch, long long target_apart, int m, int n) {
  __shared__ T tile[32][33];
  const int top = blockIdx.y * 32, left = blockIdx.x * 32, x = threadIdx.x, y = threadIdx.y;
  const bool across = row == 0 || llabs(column) <= llabs(row);
  source += blockIdx.z * apart;
  target += blockIdx.z * target_apart;
#pragma unroll
  for (int s = 0; s < 32; s += 8) {
    const int r = across ? y + s : x, c = across ? x : y + s;
    if (top + r < m && left + c < n) tile[r][c] = source[(top + r) * row + (left + c) * column];
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < 32; s += 8)
    if (top + y + s < m && left + x < n) target[(top + y + s) * pitch + left + x] = tile[y + s][x];
}

// Before and after products of exponentials, where + is log(exp(s a) + exp(s b)) / s: the operands' exponentials in double precision, with
// the largest s a of each row of A and column of B taken out, and the logarithms of the sums.

// Maps doubles to integers of the same order, and back.
__device__ __forceinline__ int64 sortable(int64 bits) { return bits ^ (bits >> 63 & 0x7fffffffffffffff); }
__device__ __forceinline__ double sorted(int64 key) { return __longlong_as_double(sortable(key)); }

__device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000); }

// The initial values of extrema, which remain for a line without finite numbers.
constexpr int64 NO_HIGH = int64(0x8080808080808080), NO_LOW = int64(0x7f7f7f7f7f7f7f7f);

// The largest and the least finite s a of each line: a row or a column of a matrix.
struct Lines {
  int64 *high, *low;
  __device__ __forceinline__ double largest(int64 line) const {
    return high[line] == NO_HIGH ? 0.0 : sorted(high[line]);
  }
  // Returns largest - least.
  __device__ __forceinline__ double spread(int64 line) const {
    return low[line] == NO_LOW ? 0.0 : sorted(high[line]) - sorted(low[line]);
  }
};

__device__ __forceinline__ void include(int64& high, int64& low, double x) {
  const int64 key = sortable(__double_as_longlong(x != x ? infinity() : x));
  high = max(high, key);
  if (x > -infinity()) low = min(low, key);
}

// Extrema of rows: a thread block of 32 x 8 threads takes a part of 8 rows.
template <class T> __device__ __forceinline__ void extrema_of_rows(StridedBatch<T> X, int64 count, int64 m, int64 n, double s, Lines lines, int64 part) {
  const int64 first = blockIdx.x * part, last = min(n, first + part);
  for (int64 b = blockIdx.z; b < count; b += gridDim.z)
    for (int64 i = blockIdx.y * int64(8) + threadIdx.y; i < m; i += gridDim.y * int64(8)) {
      int64 high = lines.high[b * m + i], low = lines.low[b * m + i];
      for (int64 j = first + threadIdx.x; j < last; j += 32) include(high, low, s * double(X.at(b, i, j)));
#pragma unroll
      for (int d = 16; d > 0; d /= 2) {
        high = max(high, __shfl_xor_sync(0xffffffff, high, d));
        low = min(low, __shfl_xor_sync(0xffffffff, low, d));
      }
      if (threadIdx.x == 0) {
        atomicMax(reinterpret_cast<long long*>(lines.high + b * m + i), static_cast<long long>(high));
        atomicMin(reinterpret_cast<long long*>(lines.low + b * m + i), static_cast<long long>(low));
      }
    }
}

// Extrema of columns: a thread block of 32 x 8 threads takes a part of 32 columns.
template <class T> __device__ __forceinline__ void extrema_of_columns(StridedBatch<T> X, int64 count, int64 m, int64 n, double s, Lines lines, int64 part) {
  __shared__ int64 highs[8][32], lows[8][32];
  const int64 j = blockIdx.x * int64(32) + threadIdx.x;
  const int x = threadIdx.x, y = threadIdx.y;
  for (int64 b = blockIdx.z; b < count; b += gridDim.z) {
    const int64 line = b * n + min(j, n - 1), first = blockIdx.y * part, last = min(m, first + part);
    int64 high = lines.high[line], low = lines.low[line];
    for (int64 i = first + y; i < last && j < n; i += 8) include(high, low, s * double(X.at(b, i, j)));
    highs[y][x] = high, lows[y][x] = low;
    __syncthreads();
    if (y == 0 && j < n) {
#pragma unroll
      for (int q = 1; q < 8; q++) high = max(high, highs[q][x]), low = min(low, lows[q][x]);
      atomicMax(reinterpret_cast<long long*>(lines.high + line), static_cast<long long>(high));
      atomicMin(reinterpret_cast<long long*>(lines.low + line), static_cast<long long>(low));
    }
    __syncthreads();
  }
}

// Returns x + y rounded, and the rounding error as `rest`.
__device__ __forceinline__ double exact_sum(double x, double y, double& rest) {
  const double sum = x + y, of_y = sum - x;
  rest = (x - (sum - of_y)) + (y - of_y);
  return sum;
}

// Returns exp(s x - largest), within two units in the last place even if the product or the difference is rounded.
__device__ __forceinline__ double exponential(double x, double s, double largest) {
  const double product = s * x;
  if (product == -infinity()) return 0.0;
  double rest;
  const double difference = exact_sum(product, -largest, rest), found = exp(difference);
  return found + found * (rest + fma(s, x, -product));
}

// Returns log(exp(alpha + beta) sum); the multiple of log 2 of the sum's exponent is added exactly.
__device__ __forceinline__ double logarithm(double alpha, double beta, double sum) {
  if (sum == 0.0) return -infinity();
  int exponent;
  double fraction = frexp(sum, &exponent);
  if (fraction < 0.70710678118654752440) fraction *= 2.0, exponent--;
  constexpr double LN2 = 6.93147180369123816490e-01, REST_OF_LN2 = 1.90821492927058770002e-10;  // log 2 as in fdlibm: 32 bits, and the rest
  double rest, more;
  const double outside = exact_sum(alpha, beta, rest);
  if (outside - outside != 0.0) return outside;  // beyond the largest number
  const double whole = exact_sum(outside, exponent * LN2, more);
  return whole + (rest + more + (exponent * REST_OF_LN2 + log(fraction)));
}

// Below this sum, subnormal terms could matter; its logarithm is 651.6 less than 0.
constexpr double LEAST_SUM = 0x1p-940, LEAST_EXPONENT = 650.0;

// Returns true if a sum of products of exponentials has lost some of them. A sum of 0 has no terms, unless the spreads allow small ones.
__device__ __forceinline__ bool lost(double sum, double spreads) { return !(sum >= LEAST_SUM) && !(sum == 0.0 && spreads <= LEAST_EXPONENT); }
