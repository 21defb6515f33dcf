// Checks of operands while a kernel reads them.
#pragma once

#include "memory.cuh"

struct Bounds { BOUNDS_FIELDS };

// Compares elements with bounds; the words of the bounds are doubles if elements are floats.
template <class S> struct Within {
  using E = typename S::Element;
  using T = decltype(E::c0);
  T least, greatest, bottom, top;
  int* target;
  int beyond = 0;

  static __device__ __forceinline__ T number(long long word) { return T(0.5) == T(0) ? T(word) : T(__longlong_as_double(word)); }
  __device__ __forceinline__ explicit Within(const Bounds& bounds)
      : least(number(bounds.least)), greatest(number(bounds.greatest)), bottom(number(bounds.bottom)), top(number(bounds.top)),
        target(bounds.beyond) {}
  __device__ __forceinline__ void take(const E& x) {
    if (!((x.c0 >= least && x.c0 <= greatest) || x.c0 == bottom || x.c0 == top)) beyond = 1;
  }
  __device__ __forceinline__ void tell() const {
    if (beyond) *target = 1;
  }
};
