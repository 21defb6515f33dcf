// Products of a sparse matrix, by compressed rows, and a dense one: C_i = sum over the entries a_ik of row i of a_ik x B_k.
//
// A row times a vector is shared by PARTS neighbouring lanes, which take its entries by turns, so that what they read lies side by side. A row
// times a matrix has LANES threads, each with COLUMNS columns of the result; a thread block has ROWS rows that follow each other, as those
// often meet the same rows of B, which the first-level cache has then.
//
// S is the semiring as `summing_source` writes it, and Index what numbers of columns are.
#pragma once

#include "sums.cuh"

// Its fields are those of the class of its name in arguments.py.
template <class S> struct Sparse {
  SPARSE_FIELDS
};

constexpr int TOGETHER = 4;  // entries of a row that are on their way at a time

// Adds the product of an entry in column k and an element of B, of which it is the left factor unless they are SWAPPED.
template <bool SWAPPED, class S, class Sum, class E = typename S::Element>
__device__ __forceinline__ void add_term(const Sparse<S>& product, Sum& sum, const E& entry, const E& other, long long k) {
  if constexpr (SWAPPED)
    sum.template add<1>(&other, &entry, int(k), product.threshold);
  else
    sum.template add<1>(&entry, &other, int(k), product.threshold);
}

template <class S, class Sum> __device__ __forceinline__ void put_sum(const Sparse<S>& product, const Sum& sum, long long at) {
  S::put(product.out, at, S::decode(sum.result(), product.threshold));
  if constexpr (Sum::SELECTS) product.via[at] = sum.winner;
}

template <class S, class Sum, class Index, int PARTS, bool SWAPPED> __device__ __forceinline__ void multiply_vector(const Sparse<S>& product) {
  using E = typename S::Element;
  const Index *const starts = static_cast<const Index*>(product.starts), *columns = static_cast<const Index*>(product.columns);
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x / PARTS) + threadIdx.x / PARTS;
  const int part = threadIdx.x % PARTS;
  const bool there = i < product.m;
  const Index begin = there ? starts[i] : 0, count = there ? starts[i + 1] - begin : 0;
  typename S::Pointers values = product.values;
  S::advance(values, begin), columns += begin;
  bool strange = false;
  Sum sum;
#pragma unroll 1
  for (Index e = part; e < count; e += PARTS * TOGETHER) {
    long long k[TOGETHER];
    E entry[TOGETHER], other[TOGETHER];
#pragma unroll
    for (int q = 0; q < TOGETHER; q++) {
      const Index at = e + q * PARTS;
      k[q] = at < count ? static_cast<long long>(columns[at]) : 0;
      entry[q] = at < count ? S::get(values, at) : S::zero();
    }
#pragma unroll
    for (int q = 0; q < TOGETHER; q++) {
      const bool known = static_cast<unsigned long long>(k[q]) < product.depth;
      strange |= !known;
      other[q] = known ? S::get(product.right, k[q] * product.right_row) : S::zero();
    }
#pragma unroll
    for (int q = 0; q < TOGETHER; q++) {
      if (e + q * PARTS >= count) break;
      add_term<SWAPPED>(product, sum, S::encode(entry[q]), S::encode(other[q]), k[q]);
    }
  }
  if (strange) *product.strange = 1;
  sum.template combine_turns<PARTS>(part);
  if (there && part == 0) put_sum(product, sum, i);
}

template <class S, class Sum, class Index, int LANES, int COLUMNS, int ROWS, bool SWAPPED>
__device__ __forceinline__ void multiply_matrix(const Sparse<S>& product) {
  using E = typename S::Element;
  const Index *const starts = static_cast<const Index*>(product.starts), *const columns = static_cast<const Index*>(product.columns);
  const int lane = threadIdx.x % LANES, groups = blockDim.x / LANES;
  const long long first = blockIdx.x * static_cast<long long>(ROWS), last = min(first + ROWS, product.m);
  bool strange = false;
  for (long long i = first + threadIdx.x / LANES; i < last; i += groups) {
    const Index begin = starts[i], count = starts[i + 1] - begin;
    for (long long j = lane; j < product.n; j += LANES * COLUMNS) {
      typename S::Pointers values = product.values;
      S::advance(values, begin);
      const Index* numbers = columns + begin;
      Sum sums[COLUMNS];
#pragma unroll 1
      for (Index e = 0; e < count; e += TOGETHER) {
        long long k[TOGETHER];
        E entry[TOGETHER], other[TOGETHER][COLUMNS];
#pragma unroll
        for (int q = 0; q < TOGETHER; q++) {
          k[q] = e + q < count ? static_cast<long long>(numbers[e + q]) : 0;
          entry[q] = e + q < count ? S::get(values, e + q) : S::zero();
        }
#pragma unroll
        for (int q = 0; q < TOGETHER; q++) {
          const bool known = static_cast<unsigned long long>(k[q]) < product.depth;
          strange |= !known;
#pragma unroll
          for (int c = 0; c < COLUMNS; c++) {
            const long long column = j + c * LANES;
            other[q][c] = known && column < product.n ? S::get(product.right, k[q] * product.right_row + column) : S::zero();
          }
        }
#pragma unroll
        for (int q = 0; q < TOGETHER; q++) {
          if (e + q >= count) break;
#pragma unroll
          for (int c = 0; c < COLUMNS; c++) add_term<SWAPPED>(product, sums[c], S::encode(entry[q]), S::encode(other[q][c]), k[q]);
        }
      }
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
        if (j + c * LANES < product.n) put_sum(product, sums[c], i * product.n + j + c * LANES);
    }
  }
  if (strange) *product.strange = 1;
}
