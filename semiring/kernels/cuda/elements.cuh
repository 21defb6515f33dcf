// Loops over the elements of strided matrices of one shape, and copies of matrices into contiguous rows.
#pragma once

#include "arithmetic.cuh"

// A batch of matrices of numbers, with strides in numbers.
template <class T> struct StridedBatch {
  STRIDEDBATCH_FIELDS
  __device__ __forceinline__ T& at(int64 b, int64 i, int64 j) const { return data[b * batch + i * row + j * column]; }
};

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
