// A matrix over a semiring S in device memory: an array for each component of an element, all of one layout.
#pragma once

#include "memory.cuh"

template <class S> struct Matrix {
  typename S::Pointers pointers;
  long long row, column, batch;  // strides in elements

  __device__ __forceinline__ long long at(int i, int j) const { return i * row + j * column; }
};

// As many elements as one access to shared memory can take.
template <class E> struct alignas(sizeof(E) < 16 ? 16 : alignof(E)) Vector {
  static constexpr int length = sizeof(E) < 16 ? 16 / sizeof(E) : 1;
  E element[length];
};
