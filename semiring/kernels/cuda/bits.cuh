// Matrices of bits, packed by rows into 32-bit words: bit j of a row is bit j % 32 of its word j / 32.
//
// Rows, and blocks of a matrix, begin at multiples of 128 bits; the padding of a row is 0. A matrix packed by columns is the transpose.
#pragma once

#include "tensor.cuh"

struct Bits {
  BITS_FIELDS

  __device__ __forceinline__ Bits of_batch(long long matrix) const { return {words + matrix * batch, row, batch}; }
};

using Truths = StridedBatch<unsigned char>;

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
  const unsigned char* const source = truths.data + place.matrix * truths.batch + place.i * truths.row;
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
  unsigned char* const target = truths.data + place.matrix * truths.batch + place.i * truths.row;
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

// Where the 128 bits of a row from column 128 c on are written: in rows, or in blocks of ROWS rows for `multiply_tiles`, which end with 0.
template <int ROWS> struct Chunks {
  uint4* data;
  int blocks, slices;  // of a matrix, and of a row

  __device__ __forceinline__ Chunks(const Bits& bits, int m, int n)
      : data(reinterpret_cast<uint4*>(bits.words)), blocks((m + ROWS - 1) / ROWS), slices((n + 1023) / 1024) {}
  __device__ __forceinline__ uint4& at(int matrix, int i, int c) const {
    return data[(((static_cast<long long>(matrix) * blocks + i / ROWS) * slices + c / 8) * 8 + c % 8) * ROWS + i % ROWS];
  }
};
template <> struct Chunks<0> {
  Bits bits;

  __device__ __forceinline__ Chunks(const Bits& bits, int, int) : bits(bits) {}
  __device__ __forceinline__ uint4& at(int matrix, int i, int c) const {
    return reinterpret_cast<uint4*>(bits.of_batch(matrix).words + i * bits.row)[c];
  }
};

// transposed <- A^T for an m x n matrix, with padding, in blocks of ROWS rows if not 0; a warp takes 128 rows and 32 columns.
template <int ROWS> __device__ __forceinline__ void transpose_bits(Bits A, Bits transposed, int m, int n) {
  const int words = (n + 31) / 32, columns = ROWS ? (n + ROWS - 1) / ROWS * ROWS : n, chunks = ROWS ? (m + 1023) / 1024 * 8 : (m + 127) / 128;
  const int across = ((columns + 31) / 32 + WARPS - 1) / WARPS;
  const int left = blockIdx.x % across, top = blockIdx.x / across % chunks, matrix = blockIdx.x / across / chunks;
  const int w = left * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32, j = w * 32 + lane;
  const Bits from = A.of_batch(matrix);
  unsigned part[4];
#pragma unroll
  for (int p = 0; p < 4; p++) {
    const int i = top * 128 + p * 32 + lane;
    part[p] = i < m && w < words ? from.words[i * from.row + w] : 0;
  }
#pragma unroll
  for (int p = 0; p < 4; p++) part[p] = transpose_word(part[p]);
  if (j < columns) Chunks<ROWS>(transposed, n, m).at(matrix, j, top) = {part[0], part[1], part[2], part[3]};
}

// blocked <- A for an m x n matrix, in blocks of ROWS rows; a thread block takes 32 rows and 1,024 columns.
template <int ROWS> __device__ __forceinline__ void arrange_bits(Bits A, Bits blocked, int m, int n) {
  const Chunks<ROWS> to(blocked, m, n);
  const int groups = to.blocks * (ROWS / 32), group = blockIdx.x / to.slices;
  const int i = group % groups * 32 + threadIdx.x % 32, c = blockIdx.x % to.slices * 8 + threadIdx.x / 32, matrix = group / groups;
  to.at(matrix, i, c) = i < m && c * 128 < n ? Chunks<0>(A, m, n).at(matrix, i, c) : uint4{};
}

// A <- I + A.
__device__ __forceinline__ void include_identity(Bits A, int n) {
  const int groups = (n + 32 * WARPS - 1) / (32 * WARPS);
  const int i = blockIdx.x % groups * 32 * WARPS + threadIdx.x;
  if (i < n) A.of_batch(blockIdx.x / groups).words[i * A.row + i / 32] |= 1u << i % 32;
}

// Waits for all thread blocks of a cluster, or of the only block.
template <int BLOCKS> __device__ __forceinline__ void meet() {
  if constexpr (BLOCKS > 1)
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  else
    __syncthreads();
}

// Reads from the shared memory of another thread block of the cluster.
__device__ __forceinline__ uint4 read_from(int block, const uint4* place) {
  Shared there;
  uint4 x;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(place)), "r"(block));
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(there) : "memory");
  return x;
}

// The closure of a block of bits: Warshall's algorithm, 32 vertices K at a time. A <- A + A^2 + ... for n <= 32 W.
//
// BLOCKS thread blocks divide the rows, and PARTS warps the words of 32 rows; a lane holds its part of a row in registers.
template <int W, int BLOCKS, int PARTS> __device__ __forceinline__ void close_bits(Bits A, int n) {
  constexpr int OWN = W / PARTS, ROWS = 32 * W / BLOCKS;
  static_assert(OWN % 4 == 0 && ROWS % 32 == 0, "rows are read by 128 bits");
  // The rows of the vertices K, then A_KK*. Two buffers alternate, so that few barriers are enough; other blocks take a copy.
  constexpr int CHUNKS = 32 * W / 4, SHARED = CHUNKS + 8;
  __shared__ uint4 published[2][SHARED], copied[SHARED];
  __shared__ unsigned shared_to[2][ROWS];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, part = warp % PARTS, own_row = warp / PARTS * 32 + lane;
  const int i = blockIdx.x % BLOCKS * ROWS + own_row, first = part * (OWN / 4);
  uint4* const place = reinterpret_cast<uint4*>(A.of_batch(blockIdx.x / BLOCKS).words + i * A.row) + first;

  unsigned a[OWN];
#pragma unroll
  for (int v = 0; v < OWN / 4; v++) {
    const uint4 some = i < n && (first + v) * 128 < n ? place[v] : uint4{};
    a[4 * v] = some.x, a[4 * v + 1] = some.y, a[4 * v + 2] = some.z, a[4 * v + 3] = some.w;
  }
  for (int w = 0; w * 32 < n; w++) {
    const int buffer = w & 1;
    const bool mine = w / OWN == part;  // a warp holds the words of K, or its neighbour does
    unsigned to = 0;  // row i of A_iK
#pragma unroll
    for (int v = 0; v < OWN; v++)
      if (v == w % OWN) to = a[v];
    if (PARTS > 1 && mine) shared_to[buffer][own_row] = to;
    if (i / 32 == w) {
#pragma unroll
      for (int v = 0; v < OWN / 4; v++)
        published[buffer][lane * (W / 4) + first + v] = {a[4 * v], a[4 * v + 1], a[4 * v + 2], a[4 * v + 3]};
      if (mine) {
        unsigned own = to;
#pragma unroll
        for (int k = 0; k < 32; k++) {
          const unsigned row = __shfl_sync(~0u, own, k);
          if (own >> k & 1) own |= row;
        }
        reinterpret_cast<unsigned*>(published[buffer] + CHUNKS)[lane] = own;
      }
    }
    meet<BLOCKS>();
    const uint4* rows = published[buffer];
    if constexpr (BLOCKS > 1) {
      for (int c = threadIdx.x; c < SHARED; c += 32 * W / BLOCKS * PARTS) copied[c] = read_from(w * 32 / ROWS, rows + c);
      rows = copied;
      __syncthreads();
    }
    // A_iK <- A_iK + A_iK A_KK*, then A_i: <- A_i: + A_iK A_K:, with A_K: from before the round.
    if (PARTS > 1) to = shared_to[buffer][own_row];
    unsigned reached = to;
#pragma unroll
    for (int k = 0; k < 32; k += 4) {
      const uint4 four = rows[CHUNKS + k / 4];
      reached |= (-(to >> k & 1) & four.x) | (-(to >> (k + 1) & 1) & four.y) | (-(to >> (k + 2) & 1) & four.z) | (-(to >> (k + 3) & 1) & four.w);
    }
#pragma unroll 8
    for (int k = 0; k < 32; k++) {
      const unsigned mask = -(reached >> k & 1);
#pragma unroll
      for (int v = 0; v < OWN / 4; v++) {
        const uint4 row = rows[k * (W / 4) + first + v];
        a[4 * v] |= mask & row.x, a[4 * v + 1] |= mask & row.y, a[4 * v + 2] |= mask & row.z, a[4 * v + 3] |= mask & row.w;
      }
    }
  }
  if (BLOCKS > 1) meet<BLOCKS>();  // a block ends when nobody reads its memory
#pragma unroll
  for (int v = 0; v < OWN / 4; v++)
    if (i < n && (first + v) * 128 < n) place[v] = {a[4 * v], a[4 * v + 1], a[4 * v + 2], a[4 * v + 3]};
}

// C <- C + A B over bits, or C <- A B. With B transposed, c_ij is 1 if row i of A and row j of B^T have a bit in common.
//
// A thread block computes a tile of BM x BN elements. Slices of BK bits of the rows go through STAGES buffers in shared memory by
// asynchronous copies, with 0 outside the operands. Rows in shared memory are padded by 16 bytes, so that equal chunks of 8 rows lie in
// different banks. A core (tensor cores or logic) adds slices to sums, and stores a bit for each sum that is not 0.

template <int BK> constexpr int pitch = BK / 8 + 16;  // bytes of a row in shared memory

// A thread block's tile of C.
struct BitTile {
  Bits C;
  int top, left, m, n;
  bool fresh;

  // Store bits of row i from column j on, relative to the tile's corner.
  __device__ __forceinline__ void put_word(int i, int j, unsigned bits) const { put(C.words, C.row, 32, i, j, bits); }
  __device__ __forceinline__ void put_byte(int i, int j, unsigned char bits) const {
    put(reinterpret_cast<unsigned char*>(C.words), C.row * 4, 8, i, j, bits);
  }

 private:
  template <class T> __device__ __forceinline__ void put(T* data, long long row, int width, int i, int j, T bits) const {
    if (top + i >= m || left + j >= n) return;
    T* const place = data + (top + i) * row + (left + j) / width;
    *place = fresh ? bits : T(*place | bits);
  }
};

// Copies slices of ROWS rows to shared memory, one after the other.
template <int ROWS, int BK, int THREADS> struct BitStager {
  static constexpr int CHUNKS = BK / 128, STEP = THREADS / CHUNKS, COPIES = ROWS / STEP;
  static_assert(THREADS % CHUNKS == 0 && ROWS % STEP == 0, "the threads divide a slice");

  const uint4* source;
  const long long step;  // between a thread's rows
  const int i, j, rows;
  int chunks;  // left in a row

  __device__ __forceinline__ BitStager(const Bits& X, int top, int m, int k)
      : step(X.row / 4 * STEP), i(threadIdx.x / CHUNKS), j(threadIdx.x % CHUNKS), rows(m - top - i), chunks((k + 127) / 128 - j) {
    source = reinterpret_cast<const uint4*>(X.words + (top + i) * X.row) + j;
  }

  __device__ __forceinline__ void stage(char* shared) {
    char* const target = shared + i * pitch<BK> + j * 16;
#pragma unroll
    for (int s = 0; s < COPIES; s++)
      copy_async_or_zero(target + s * STEP * pitch<BK>, source + s * step, chunks > 0 && s * STEP < rows);
    source += CHUNKS;
    chunks -= CHUNKS;
  }
};

// Stores a bit for each sum of a warp that is not 0, in 16 rows and 8 N columns. A lane has two of 8 columns, in row lane / 4 and 8 rows below;
// the four lanes of a row combine their bits.
template <int N> __device__ __forceinline__ void store_bits(const int* sums, const BitTile& tile, int row, int column) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; half++)
#pragma unroll
    for (int w = 0; w < N / 4; w++) {
      unsigned word = 0;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int* const two = sums + (w * 4 + j) * 4 + half * 2;
        if (two[0]) word |= 1u << 8 * j;
        if (two[1]) word |= 2u << 8 * j;
      }
      word <<= lane % 4 * 2;
      word |= __shfl_xor_sync(~0u, word, 1);
      word |= __shfl_xor_sync(~0u, word, 2);
      if (lane % 4 == w % 4) tile.put_word(row + half * 8 + lane / 4, column + w * 32, word);
    }
}

#if __CUDA_ARCH__ >= 800
// Counts common bits by tensor cores; a warp has WM x WN elements.
template <int BM, int BN, int BK, int WM, int WN> struct TensorCore {
  static constexpr int threads = BM / WM * (BN / WN) * 32;
  static constexpr int DOWN = WM / 16, ACROSS = WN / 8, STEPS = BK / 256;
  static_assert(WN % 32 == 0 && BK % 256 == 0, "whole words, whole instructions");

  const int lane, row, column;  // of the warp's corner
  int count[DOWN][ACROSS][4];
  unsigned a[2][DOWN][4], b[2][ACROSS][2];

  __device__ __forceinline__ TensorCore()
      : lane(threadIdx.x % 32), row(threadIdx.x / 32 / (BN / WN) * WM), column(threadIdx.x / 32 % (BN / WN) * WN) {
    fill(count, 0);
  }

  __device__ __forceinline__ void accumulate(const char* a_slice, const char* b_slice) {
    // A lane addresses one row, of 16 bytes, of four 8 x 8 matrices of 16 bits: two above each other twice for A, two side by side for B.
    const Shared a_place = shared_address(a_slice + (row + lane % 16) * pitch<BK> + lane / 16 * 16);
    const Shared b_place = shared_address(b_slice + (column + lane / 16 * 8 + lane % 8) * pitch<BK> + lane / 8 % 2 * 16);
    load(0, a_place, b_place);
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
      if (s + 1 < STEPS) load((s + 1) % 2, a_place + (s + 1) * 32, b_place + (s + 1) * 32);
#pragma unroll
      for (int i = 0; i < DOWN; i++)
#pragma unroll
        for (int j = 0; j < ACROSS; j++)
          asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
              : "+r"(count[i][j][0]), "+r"(count[i][j][1]), "+r"(count[i][j][2]), "+r"(count[i][j][3])
              : "r"(a[s % 2][i][0]), "r"(a[s % 2][i][1]), "r"(a[s % 2][i][2]), "r"(a[s % 2][i][3]), "r"(b[s % 2][j][0]), "r"(b[s % 2][j][1]));
    }
  }

  __device__ __forceinline__ void store(const BitTile& tile) const {
#pragma unroll
    for (int i = 0; i < DOWN; i++) store_bits<ACROSS>(&count[i][0][0], tile, row + i * 16, column);
  }

 private:
  static __device__ __forceinline__ void load_matrices(Shared place, unsigned& w, unsigned& x, unsigned& y, unsigned& z) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(w), "=r"(x), "=r"(y), "=r"(z) : "r"(place));
  }

  __device__ __forceinline__ void load(int buffer, Shared a_place, Shared b_place) {
#pragma unroll
    for (int i = 0; i < DOWN; i++) {
      auto& x = a[buffer][i];
      load_matrices(a_place + i * 16 * pitch<BK>, x[0], x[1], x[2], x[3]);
    }
#pragma unroll
    for (int j = 0; j < ACROSS; j += 2) {
      auto &x = b[buffer][j], &y = b[buffer][j + 1];
      load_matrices(b_place + j * 8 * pitch<BK>, x[0], x[1], y[0], y[1]);
    }
  }
};
#endif

// Gathers common bits by logic, 32 per instruction; a thread has TM x TN elements, with rows BM / TM and columns BN / TN apart.
template <int BM, int BN, int BK, int TM, int TN> struct Logic {
  static constexpr int DOWN = BM / TM, ACROSS = BN / TN, threads = DOWN * ACROSS;
  static_assert(DOWN % 4 == 0 && ACROSS % 8 == 0 && TN == 8, "a warp has 4 x 8 threads, and each thread of a row writes a byte");

  const int lane, row, column;
  unsigned common[TM][TN];

  __device__ __forceinline__ Logic()
      : lane(threadIdx.x % 32), row(threadIdx.x / 32 / (ACROSS / 8) * 4 + lane / 8), column(threadIdx.x / 32 % (ACROSS / 8) * 8) {
    fill(common, 0u);
  }

  __device__ __forceinline__ void accumulate(const char* a_slice, const char* b_slice) {
    const char* const a_rows = a_slice + row * pitch<BK>;
    const char* const b_rows = b_slice + (column + lane % 8) * pitch<BK>;
#pragma unroll 1
    for (int chunk = 0; chunk < BK / 8; chunk += 16) {
      uint4 b[TN];
#pragma unroll
      for (int j = 0; j < TN; j++) b[j] = *reinterpret_cast<const uint4*>(b_rows + j * ACROSS * pitch<BK> + chunk);
#pragma unroll
      for (int i = 0; i < TM; i++) {
        const uint4 a = *reinterpret_cast<const uint4*>(a_rows + i * DOWN * pitch<BK> + chunk);
#pragma unroll
        for (int j = 0; j < TN; j++) {
          common[i][j] |= a.x & b[j].x;
          common[i][j] |= a.y & b[j].y;
          common[i][j] |= a.z & b[j].z;
          common[i][j] |= a.w & b[j].w;
        }
      }
    }
  }

  // The 8 lanes of a row have 8 neighbouring columns at a time: lane j writes the byte of step j.
  __device__ __forceinline__ void store(const BitTile& tile) const {
#pragma unroll
    for (int i = 0; i < TM; i++) {
      unsigned own = 0;
#pragma unroll
      for (int j = 0; j < TN; j++) {
        const unsigned votes = __ballot_sync(~0u, common[i][j] != 0);
        if (lane % 8 == j) own = votes;
      }
      tile.put_byte(row + i * DOWN, column + lane % 8 * ACROSS, static_cast<unsigned char>(own >> lane / 8 * 8));
    }
  }
};

template <class Core, int BM, int BN, int BK, int STAGES>
__device__ __forceinline__ void multiply_bits(Bits A, Bits transposed, Bits C, int m, int n, int k, bool fresh) {
  constexpr int GROUP = 8;  // block rows that run together and share B in the cache
  constexpr int A_STAGE = BM * pitch<BK>, B_STAGE = BN * pitch<BK>;
  extern __shared__ __align__(16) char shared[];
  char* const a_stages = shared;
  char* const b_stages = shared + STAGES * A_STAGE;

  const int across = (n + BN - 1) / BN, down = (m + BM - 1) / BM, tiles = across * down;
  const int matrix = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const int group = tile / (GROUP * across), in_group = tile % (GROUP * across);
  const int rows = min(GROUP, down - group * GROUP);
  const int top = (group * GROUP + in_group % rows) * BM, left = in_group / rows * BN;

  const int slices = (k + BK - 1) / BK;
  BitStager<BM, BK, Core::threads> stage_a(A.of_batch(matrix), top, m, k);
  BitStager<BN, BK, Core::threads> stage_b(transposed.of_batch(matrix), left, n, k);
  auto stage = [&](int slice, int buffer) {
    if (slice < slices) {
      stage_a.stage(a_stages + buffer * A_STAGE);
      stage_b.stage(b_stages + buffer * B_STAGE);
    }
    commit_copies();
  };

  Core core;
#pragma unroll
  for (int slice = 0; slice < STAGES - 1; slice++) stage(slice, slice);
  int reading = 0, writing = STAGES - 1;
  for (int slice = 0; slice < slices; slice++) {
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    stage(slice + STAGES - 1, writing);
    core.accumulate(a_stages + reading * A_STAGE, b_stages + reading * B_STAGE);
    reading = reading + 1 == STAGES ? 0 : reading + 1;
    writing = writing + 1 == STAGES ? 0 : writing + 1;
  }
  core.store({C.of_batch(matrix), top, left, m, n, fresh});
}

// The same by warpgroups, for operands in blocks.
template <int GROUPS, int STAGES>
__device__ __forceinline__ void multiply_blocked_bits(Bits A, Bits transposed, Bits C, int m, int n, int k, int batch, bool fresh) {
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1000
  const Tiles tiles{(m + down<GROUPS> - 1) / down<GROUPS>, (n + ACROSS - 1) / ACROSS, batch, (k + 1023) / 1024};
  const char *a = reinterpret_cast<const char*>(A.words), *b = reinterpret_cast<const char*>(transposed.words);
  multiply_tiles<CommonBits, GROUPS, STAGES>(a, b, tiles, [&](const int (&sums)[SUMS], int matrix, int top, int left, int row) {
    store_bits<ACROSS / 8>(sums, {C.of_batch(matrix), top * down<GROUPS>, left * ACROSS, m, n, fresh}, row + threadIdx.x % 128 / 32 * 16, 0);
  });
#endif
}
