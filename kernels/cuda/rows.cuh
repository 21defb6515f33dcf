// A copy of a matrix of numbers of any strides, in rows.
#pragma once

#include "arithmetic.cuh"

// Blocks of 32 x 8 threads copy tiles of 32 x 32, reading along whichever axis of the source is the denser one.
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
