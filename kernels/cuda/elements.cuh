// What is done to each element of matrices of one shape, wherever their elements lie.
#pragma once

#include "arithmetic.cuh"

// A batch of matrices of numbers, with strides in numbers.
template <class T> struct Strided {
  T* data;
  int64 row, column, batch;
  __device__ __forceinline__ T& at(int64 b, int64 i, int64 j) const { return data[b * batch + i * row + j * column]; }
};

// Calls body(b, i, j) for all of `count` matrices of m x n elements; threads side by side have neighbours in a row.
template <class Body> __device__ __forceinline__ void each_element(int64 count, int64 m, int64 n, Body body) {
  for (int64 b = blockIdx.z; b < count; b += gridDim.z)
    for (int64 i = blockIdx.y; i < m; i += gridDim.y)
      for (int64 j = blockIdx.x * int64(blockDim.x) + threadIdx.x; j < n; j += gridDim.x * int64(blockDim.x)) body(b, i, j);
}
