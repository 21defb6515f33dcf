// The gradient of one operand of a product whose + selects: gradients of values, added up by their witness.
//
// A line is a row of the left operand and of the values, or a column of the right operand and of the values. A warp adds up the values of
// a line in order, so two launches give the same bits. W has the type of numbers and the derivative of the semiring's product.
#pragma once

#include "memory.cuh"

template <class T> struct GradientSums { GRADIENTSUMS_FIELDS };

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
