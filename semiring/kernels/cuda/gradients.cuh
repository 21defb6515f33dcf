// Gradients of products. A line is a row of the left operand and of the values, or a column of the right operand and of the values.
#pragma once

#include "memory.cuh"

template <class T> struct GradientSums { GRADIENTSUMS_FIELDS };
template <class T> struct LineExponentials { LINEEXPONENTIALS_FIELDS };
template <class T> struct GradientWeights { GRADIENTWEIGHTS_FIELDS };

// Adds up gradients of values by their witness, where + selects. A warp adds the values of a line in order, so two launches give the same
// bits. W has the type of numbers and the derivative of the semiring's product.
template <class W, int WARPS> __device__ __forceinline__ void sum_gradients(const GradientSums<typename W::Value>& given) {
  using T = typename W::Value;
  constexpr unsigned ALL = 0xffffffffu;
  constexpr int AHEAD = 4;  // vectors of values that are loaded before the first one is added
  extern __shared__ __align__(16) unsigned char memory[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long line = (long long)blockIdx.x * WARPS + warp, matrix = blockIdx.z;
  const int first = blockIdx.y * (int)given.span, width = min((int)given.span, (int)given.depth - first);
  T* sums = reinterpret_cast<T*>(memory) + warp * given.span;
  if (line >= given.lines) return;
  for (int x = lane; x < width; x += 32) sums[x] = T(0);
  __syncwarp();
  for (int start = 0; start < given.entries; start += AHEAD * 32) {
    int places[AHEAD];
    T values[AHEAD];
#pragma unroll
    for (int q = 0; q < AHEAD; q++) {
      const int entry = start + 32 * q + lane;
      const int k = entry < given.entries ? given.witness.at(matrix, line, entry) : -1;
      places[q] = k >= first && k < first + width ? k - first : -1;
      values[q] = places[q] < 0 ? T(0) : given.gradients.at(matrix, line, entry);
      if (W::READS && places[q] >= 0) values[q] *= W::weight(given.own.at(matrix, line, k), given.other.at(matrix, entry, k));
    }
#pragma unroll
    for (int q = 0; q < AHEAD; q++) {
      const unsigned alike = __match_any_sync(ALL, places[q]);
      unsigned rest = places[q] < 0 ? 0 : alike;
      T sum = T(0);
      while (__any_sync(ALL, rest != 0)) {
        const T value = __shfl_sync(ALL, values[q], rest ? __ffs(rest) - 1 : lane);
        if (rest) sum += value;
        rest &= rest - 1;
      }
      if (places[q] >= 0 && __ffs(alike) - 1 == lane) sums[places[q]] += sum;
      __syncwarp();
    }
  }
  for (int x = lane; x < width; x += 32) given.sums.at(matrix, line, first + x) = W::READS ? sums[x] : sums[x] * W::weight(T(0), T(0));
}

// Writes e^{s x - largest} for the entries x of each line, where `largest` is the largest s x, or 0 if all are -inf. A warp has a line.
template <class T, int WARPS> __device__ __forceinline__ void write_exponentials(const LineExponentials<T>& given) {
  const int lane = threadIdx.x % 32;
  const long long line = (long long)blockIdx.x * WARPS + threadIdx.x / 32, matrix = blockIdx.z;
  if (line >= given.lines) return;
  const T scale = T(__longlong_as_double(given.scale));
  T largest = -__int_as_float(0x7f800000);
  for (long long x = lane; x < given.entries; x += 32) largest = maximum<T>(largest, scale * given.source.at(matrix, line, x));
#pragma unroll
  for (int other = 16; other > 0; other /= 2) largest = maximum<T>(largest, __shfl_xor_sync(0xffffffffu, largest, other));
  if (largest == -__int_as_float(0x7f800000)) largest = T(0);
  for (long long x = lane; x < given.entries; x += 32) given.to.at(matrix, line, x) = exp(scale * given.source.at(matrix, line, x) - largest);
  if (lane == 0) given.largest[matrix * given.lines + line] = largest;
}

// Writes the gradient of each value times e^{row + column - s c}, and 0 where c is the zero: -inf, or inf for a negative scale. The first two results become the bits of the
// largest exponent and of the largest absolute value; a NaN is larger than any number.
template <class T, class Bits> __device__ __forceinline__ void write_weights(const GradientWeights<T>& given) {
  const T scale = T(__longlong_as_double(given.scale));
  T exponent = T(0), size = T(0);
  for (long long i = blockIdx.x; i < given.m * given.batch; i += gridDim.x) {
    const long long matrix = i / given.m, row = i % given.m;
    for (long long j = threadIdx.x; j < given.n; j += blockDim.x) {
      const T value = given.values.at(matrix, row, j), c = scale * value;  // which can overflow
      const T x = given.rows[matrix * given.m + row] + given.columns[matrix * given.n + j] - c;
      const bool reached = value != (scale < T(0) ? T(1) : T(-1)) * T(__int_as_float(0x7f800000));
      const T weight = reached ? given.gradients.at(matrix, row, j) * exp(x) : T(0);
      given.weights[i * given.n + j] = weight;
      if (reached) exponent = maximum<T>(exponent, x), size = maximum<T>(size, abs(weight));
    }
  }
#pragma unroll
  for (int other = 16; other > 0; other /= 2) {
    exponent = maximum<T>(exponent, __shfl_xor_sync(0xffffffffu, exponent, other));
    size = maximum<T>(size, __shfl_xor_sync(0xffffffffu, size, other));
  }
  if (threadIdx.x % 32 == 0) {
    Bits* results = reinterpret_cast<Bits*>(given.results);
    atomicMax(results, reinterpret_cast<const Bits&>(exponent)), atomicMax(results + 1, reinterpret_cast<const Bits&>(size));
  }
}
