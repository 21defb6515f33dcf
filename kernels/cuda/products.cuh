// The products that a launch computes.
#pragma once

#include "matrix.cuh"

// Whether it is a launch's turn, of two of which the numbers decide which one computes: where `signs` is, if it is as told.
struct Turn {
  const int* signs;
  long long as;

  __device__ __forceinline__ bool comes() const { return signs == nullptr || *signs == as; }
};

template <class S> struct Witness {
  Matrix<S> transposed;  // B with its columns contiguous
  int* via;
  long long row, batch;
  long long first;  // the vertex that k = 0 stands for
};

template <class S> struct Product {
  Matrix<S> A, B, C;
  long long m, n, k;
  long long tiles;  // of C, once for each part
  long long fresh;  // C <- A x B
  long long depth;  // steps of a part; the sums of the parts are a batch of results
  Witness<S> witness;
};

// What one launch computes: products that do not depend on each other, one after the other in its grid.
template <class S, int COUNT> struct Products {
  Product<S> product[COUNT];
  Turn turn;

  // The product to which tile `number` of all belongs; `number` is then counted within it.
  __device__ __forceinline__ const Product<S>& of(int& number) const {
    int p = 0;
    for (; p + 1 < COUNT && number >= product[p].tiles; p++) number -= product[p].tiles;
    return product[p];
  }
};
