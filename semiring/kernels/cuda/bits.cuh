// Matrices of bits, packed by rows into 32-bit words: bit j of a row is bit j % 32 of its word j / 32.
//
// Rows, and blocks of a matrix, begin at multiples of 128 bits; the padding of a row is 0. A matrix packed by columns is the transpose.
#pragma once

#include "arguments.cuh"

struct Bits {
  BITS_FIELDS

  __device__ __forceinline__ Bits of_batch(long long matrix) const { return {words + matrix * batch, row, batch}; }
};

// A batch of truth values, one byte each, with any strides.
struct Truths { TRUTHS_FIELDS };

constexpr int WARPS = 8;  // per thread block of the auxiliary kernels
constexpr int PART = 512, SPAN = 4 * PART;  // columns that a warp converts at once, 16 per lane, and in total

// Returns one bit per byte: 1 if the byte is not 0.
__device__ __forceinline__ unsigned gather_bits(uint4 bytes) {
  auto four = [](unsigned x) { return ((((x & 0x7f7f7f7f) + 0x7f7f7f7f) | x) >> 7 & 0x01010101) * 0x01020408 >> 24 & 15; };
  return four(bytes.x) | four(bytes.y) << 4 | four(bytes.z) << 8 | four(bytes.w) << 12;
}

// Returns 16 bits as bytes of 0 and 1.
__device__ __forceinline__ uint4 spread_bits(unsigned bits) {
  auto four = [&](int first) { return (bits >> first & 15) * 0x00204081 & 0x01010101; };
  return {four(0), four(4), four(8), four(12)};
}

// The matrix, row and first column that a warp converts.
struct Place {
  int matrix, i, first;

  __device__ __forceinline__ Place(int m, int n) {
    const int spans = (n + SPAN - 1) / SPAN, groups = (m + WARPS - 1) / WARPS, group = blockIdx.x / spans;
    matrix = group / groups, i = group % groups * WARPS + threadIdx.x / 32, first = blockIdx.x % spans * SPAN;
  }
};

// bits <- truths != 0, and 0 in the padding. Where rows are contiguous and aligned, a lane reads its 16 bytes at once.
__device__ __forceinline__ void pack_rows(Truths truths, Bits bits, int m, int n, bool aligned) {
  const Place place(m, n);
  if (place.i >= m) return;
  const int lane = threadIdx.x % 32, padded = (n + 127) / 128 * 128;
  const unsigned char* const source = truths.bytes + place.matrix * truths.batch + place.i * truths.row;
  auto* const target = reinterpret_cast<unsigned short*>(bits.of_batch(place.matrix).words + place.i * bits.row);
  uint4 bytes[SPAN / PART];
#pragma unroll
  for (int p = 0; p < SPAN / PART; p++) {
    const int left = place.first + p * PART;
    bytes[p] = aligned && left + PART <= n ? *reinterpret_cast<const uint4*>(source + left + lane * 16) : uint4{};
  }
#pragma unroll
  for (int p = 0; p < SPAN / PART; p++) {
    const int left = place.first + p * PART;
    if (left >= padded) break;
    unsigned own = gather_bits(bytes[p]);
    if (!aligned || left + PART > n) {
#pragma unroll
      for (int q = 0; q < 16; q++) {
        const int j = left + q * 32 + lane;
        const unsigned votes = __ballot_sync(~0u, j < n && source[j * truths.column] != 0);
        if (lane / 2 == q) own = votes >> lane % 2 * 16;
      }
    }
    if (left + lane * 16 < padded) target[left / 16 + lane] = own;
  }
}

// truths <- bits.
__device__ __forceinline__ void unpack_rows(Bits bits, Truths truths, int m, int n, bool aligned) {
  const Place place(m, n);
  if (place.i >= m) return;
  const int lane = threadIdx.x % 32;
  const auto* const source = reinterpret_cast<const unsigned short*>(bits.of_batch(place.matrix).words + place.i * bits.row);
  unsigned char* const target = truths.bytes + place.matrix * truths.batch + place.i * truths.row;
#pragma unroll
  for (int p = 0; p < SPAN / PART; p++) {
    const int left = place.first + p * PART;
    if (left >= n) break;
    const unsigned own = left + lane * 16 < n ? source[left / 16 + lane] : 0;
    if (aligned && left + PART <= n) {
      *reinterpret_cast<uint4*>(target + left + lane * 16) = spread_bits(own);
    } else {
#pragma unroll
      for (int q = 0; q < 16; q++) {
        const int j = left + q * 32 + lane;
        const unsigned half = __shfl_sync(~0u, own, q * 2 + lane / 16);
        if (j < n) target[j * truths.column] = half >> lane % 16 & 1;
      }
    }
  }
}

// Transposes 32 x 32 bits, a word per lane: blocks of 16 x 16 bits are swapped first, then blocks of 8 x 8 within them, and so on.
__device__ __forceinline__ unsigned transpose_word(unsigned word) {
  const int lane = threadIdx.x % 32;
  unsigned low = 0x0000ffff;
#pragma unroll
  for (int side = 16; side > 0; side /= 2) {
    const unsigned other = __shfl_xor_sync(~0u, word, side);
    word = lane & side ? (word & ~low) | (other >> side & low) : (word & low) | (other << side & ~low);
    low ^= low << side / 2;
  }
  return word;
}

// transposed <- A^T for an m x n matrix, with padding; a warp takes 128 rows and 32 columns.
__device__ __forceinline__ void transpose_bits(Bits A, Bits transposed, int m, int n) {
  const int words = (n + 31) / 32, across = (words + WARPS - 1) / WARPS, down = (m + 127) / 128;
  const int left = blockIdx.x % across, top = blockIdx.x / across % down, matrix = blockIdx.x / across / down;
  const int w = left * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32, j = w * 32 + lane;
  if (w >= words) return;
  const Bits from = A.of_batch(matrix), to = transposed.of_batch(matrix);
  unsigned part[4];
#pragma unroll
  for (int p = 0; p < 4; p++) {
    const int i = top * 128 + p * 32 + lane;
    part[p] = i < m ? from.words[i * from.row + w] : 0;
  }
#pragma unroll
  for (int p = 0; p < 4; p++) part[p] = transpose_word(part[p]);
  if (j < n) *reinterpret_cast<uint4*>(to.words + j * to.row + top * 4) = {part[0], part[1], part[2], part[3]};
}

// A <- I + A.
__device__ __forceinline__ void include_identity(Bits A, int n) {
  const int groups = (n + 32 * WARPS - 1) / (32 * WARPS);
  const int i = blockIdx.x % groups * 32 * WARPS + threadIdx.x;
  if (i < n) A.of_batch(blockIdx.x / groups).words[i * A.row + i / 32] |= 1u << i % 32;
}

// The closure of a block of bits by one thread block: Warshall's algorithm, 32 vertices K at a time. Thread i holds row i in registers.
// A <- A + A^2 + ... for n <= 32 W.
template <int W> __device__ __forceinline__ void close_bits(Bits A, int n) {
  static_assert(W % 4 == 0, "rows are read by 128 bits");
  // The rows of the vertices K, and A_KK*. Two buffers alternate, so that one barrier per round is enough.
  __shared__ uint4 rows[2][32][W / 4];
  __shared__ unsigned between[2][32];
  const int i = threadIdx.x, lane = i % 32;
  uint4* const place = reinterpret_cast<uint4*>(A.of_batch(blockIdx.x).words + i * A.row);

  unsigned a[W];
#pragma unroll
  for (int v = 0; v < W / 4; v++) {
    const uint4 some = i < n && v * 128 < n ? place[v] : uint4{};
    a[4 * v] = some.x, a[4 * v + 1] = some.y, a[4 * v + 2] = some.z, a[4 * v + 3] = some.w;
  }
  for (int w = 0; w * 32 < n; w++) {
    const int buffer = w & 1;
    unsigned to = 0;  // row i of A_iK
#pragma unroll
    for (int v = 0; v < W; v++)
      if (v == w) to = a[v];
    if (i / 32 == w) {
      unsigned own = to;
#pragma unroll
      for (int k = 0; k < 32; k++) {
        const unsigned row = __shfl_sync(~0u, own, k);
        if (own >> k & 1) own |= row;
      }
      between[buffer][lane] = own;
#pragma unroll
      for (int v = 0; v < W / 4; v++) rows[buffer][lane][v] = {a[4 * v], a[4 * v + 1], a[4 * v + 2], a[4 * v + 3]};
    }
    __syncthreads();
    // A_iK <- A_iK + A_iK A_KK*, then A_i: <- A_i: + A_iK A_K:, with A_K: from before the round.
    unsigned reached = to;
#pragma unroll
    for (int k = 0; k < 32; k++)
      if (to >> k & 1) reached |= between[buffer][k];
#pragma unroll 8
    for (int k = 0; k < 32; k++) {
      const unsigned mask = -(reached >> k & 1);
#pragma unroll
      for (int v = 0; v < W / 4; v++) {
        const uint4 row = rows[buffer][k][v];
        a[4 * v] |= mask & row.x, a[4 * v + 1] |= mask & row.y, a[4 * v + 2] |= mask & row.z, a[4 * v + 3] |= mask & row.w;
      }
    }
  }
#pragma unroll
  for (int v = 0; v < W / 4; v++)
    if (i < n && v * 128 < n) place[v] = {a[4 * v], a[4 * v + 1], a[4 * v + 2], a[4 * v + 3]};
}
