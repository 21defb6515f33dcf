// Products of small integers under (min, +) or (max, +), by powers of 2 on the tensor cores (after Yuval 1976).
//
// With x_ik = side (a_ik - a) >= 0 and y_kj = side (b_kj - b) >= 0, where side is 1 for minima and -1 for maxima, the largest term of
// Σ_k 2^(-G x_ik) 2^(-G y_kj) is that of the least x_ik + y_kj, and c_ij = a + b + side min_k(x_ik + y_kj). An infinite number has the
// power 0.
#pragma once

#include "arithmetic.cuh"
#include "tensor.cuh"

// Returns a number of any dtype without a wrap.
__device__ __forceinline__ float wide(float x) { return x; }
__device__ __forceinline__ double wide(double x) { return x; }
template <class T> __device__ __forceinline__ long long wide(T x) { return static_cast<long long>(x); }

// Tests for floats that are no integers, or far too large.
__device__ __forceinline__ bool is_fraction(float x) { return x != float(int(x)); }
__device__ __forceinline__ bool is_fraction(double x) { return x != double(int(x)); }
template <class T> __device__ __forceinline__ bool is_fraction(T) { return false; }

template <int SIDE, class T> __device__ __forceinline__ bool is_infinite(T x, T zero) { return SIDE > 0 ? x >= zero : x <= zero; }

// Writes the powers of an operand, in blocks of ROWS rows for `multiply_tiles`; a thread writes 8 powers of a row. The biased exponent of
// `origin` is `top`; numbers more than `most` beyond have the power 0. For G = 4, 16 products have 14 numbers: the largest power so far
// is the 15th term. With VECTOR, rows are contiguous and aligned. A thread block reads 32 or 128 neighbouring rows. `fractions`, unless
// null, becomes 1 if a finite number is no integer.
template <int SIDE, int G, int ROWS, bool VECTOR, class T>
__device__ __forceinline__ void write_powers(StridedBatch<T> X, uint4* powers, int m, int n, int slices, int origin, int most, int top, T zero,
                                             int* fractions) {
  constexpr int USED = G == 8 ? 16 : 14, NEXT = VECTOR ? 32 : 128;
  const int groups = (m + ROWS - 1) / ROWS * (ROWS / NEXT), matrix = blockIdx.z;
  const int i = blockIdx.x % groups * NEXT + threadIdx.x % NEXT, column = blockIdx.x / groups * (256 / NEXT) + threadIdx.x / NEXT;
  const int blocks = (m + ROWS - 1) / ROWS, first = column / 2 * USED + column % 2 * 8, count = USED - column % 2 * 8;
  union {
    T numbers[8];
    uint4 words[sizeof(T) / 2];
  } x;
  if (VECTOR && i < m && first + 8 <= n) {
#pragma unroll
    for (int q = 0; q < int(sizeof(T)) / 2; q++) x.words[q] = reinterpret_cast<const uint4*>(&X.at(matrix, i, first))[q];
  } else {
#pragma unroll
    for (int q = 0; q < 8; q++) x.numbers[q] = i < m && first + q < n && q < count ? X.at(matrix, i, first + q) : zero;
  }
  unsigned words[4] = {};
  bool fraction = false;
#pragma unroll
  for (int q = 0; q < 8; q++) {
    const T number = x.numbers[q];
    if (is_infinite<SIDE>(number, zero)) continue;
    const auto beyond = SIDE * (wide(number) - origin);
    fraction |= is_fraction(number);
    if (beyond >= 0 && beyond <= most) words[q / 2] |= (top - G * int(beyond)) << (q % 2 * 16 + 7);
  }
  if (fraction && fractions != nullptr) *fractions = 1;
  const long long block = (static_cast<long long>(matrix) * blocks + i / ROWS) * slices + column / 8;
  powers[(block * 8 + column % 8) * ROWS + i % ROWS] = {words[0], words[1], words[2], words[3]};
}

// Writes two neighbours in a row at once, past the caches.
template <class T> __device__ __forceinline__ void write_pair(T* target, const T (&pair)[2]) {
  union {
    T numbers[2];
    unsigned one;
    uint2 two;
    uint4 four;
  } x = {{pair[0], pair[1]}};
  if constexpr (sizeof(T) == 2) __stcs(reinterpret_cast<unsigned*>(target), x.one);
  if constexpr (sizeof(T) == 4) __stcs(reinterpret_cast<uint2*>(target), x.two);
  if constexpr (sizeof(T) == 8) __stcs(reinterpret_cast<uint4*>(target), x.four);
}

// C <- C + A B or C <- A B, from powers; `origin` is a + b.
template <int SIDE, int G, int GROUPS, int STAGES, class T>
__device__ __forceinline__ void multiply_powers(const char* A, const char* B, StridedBatch<T> C, int m, int n, int batch, int slices, int origin,
                                                T zero, bool fresh) {
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1000
  const Tiles tiles{(m + down<GROUPS> - 1) / down<GROUPS>, (n + ACROSS - 1) / ACROSS, batch, slices};
  const bool pairs = C.column == 1 && (reinterpret_cast<unsigned long long>(C.data) / sizeof(T) | C.row | C.batch) % 2 == 0;
  multiply_tiles<Powers<G>, GROUPS, STAGES>(A, B, tiles, [&](const float (&sums)[SUMS], int matrix, int top, int left, int row) {
    const int lane = threadIdx.x % 32, first = top * down<GROUPS> + row + threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int q = 0; q < ACROSS / 8; q++) {
        const int i = first + 8 * half, j = left * ACROSS + lane % 4 * 2 + 8 * q;
        if (i >= m || j >= n) continue;
        T found[2];
#pragma unroll
        for (int p = 0; p < 2; p++) {
          const int exponent = __float_as_uint(sums[4 * q + 2 * half + p]) >> Powers<G>::SHIFT;
          found[p] = exponent ? T(origin + SIDE * (248 / G - exponent)) : zero;
          if (fresh || j + p >= n) continue;
          const T c = C.at(matrix, i, j + p);
          found[p] = SIDE > 0 ? minimum(c, found[p]) : maximum(c, found[p]);
        }
        if (pairs && j + 1 < n) {
          write_pair(&C.at(matrix, i, j), found);
        } else {
          C.at(matrix, i, j) = found[0];
          if (j + 1 < n) C.at(matrix, i, j + 1) = found[1];
        }
      }
  });
#endif
}
