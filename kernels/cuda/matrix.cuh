// A matrix over a semiring S in device memory: an array for each component of an element, all of one layout.
#pragma once

#include "memory.cuh"

template <class S> struct Matrix {
  typename S::Pointers pointers;
  long long row, column, batch;  // strides in elements

  __device__ __forceinline__ long long at(int i, int j) const { return i * row + j * column; }
};

// Elements that one access to shared memory takes: as many as it can, or fewer.
template <class E, int N = sizeof(E) < 16 ? 16 / sizeof(E) : 1> struct alignas(sizeof(E) < 16 ? N * sizeof(E) : alignof(E)) Vector {
  static constexpr int length = N;
  E element[N];
};

// A value that stays in a register, instead of being computed again and again from what the compiler knows of it.
__device__ __forceinline__ int kept(int x) { return __shfl_sync(0xffffffff, x, threadIdx.x % 32); }

// The numbers of this thread and this block, read anew at each call: what depends on them then need not stay in registers in between.
__device__ __forceinline__ int thread_number() {
  int x;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
  return x;
}
__device__ __forceinline__ int block_number() {
  int x;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
  return x;
}
