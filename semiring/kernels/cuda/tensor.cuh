// Products on the tensor cores of compute capability 9.0: instructions of warpgroups, on blocks that bulk copies bring to shared memory.
//
// In a thread block, GROUPS warpgroups compute 64 x 256 elements each, below one another, and one warpgroup copies. STEP bytes of each row
// at a time go through STAGES buffers. An operand lies in global memory as it lies in the buffers: for each block of rows, and each STEP
// bytes of these rows, 8 columns of 16 bytes a row, the rows following one another. So 8 rows of a column are the 128 bytes that the tensor
// cores take at once, and no bank of shared memory is read twice.
#pragma once

#include "memory.cuh"

#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1000

constexpr int STEP = 128;  // bytes of a row in a buffer
constexpr int ACROSS = 256;  // columns of a tile: rows of B^T
constexpr int SUMS = 128;  // a thread's elements

// Returns rows of a tile.
template <int GROUPS> constexpr int down = 64 * GROUPS;

// Returns bytes of a buffer: rows of A, then rows of B^T.
template <int GROUPS> constexpr int stage_bytes = (down<GROUPS> + ACROSS) * STEP;

// A barrier in shared memory, on which threads wait for copies, or for one another.
struct Barrier {
  Shared place;

  __device__ __forceinline__ void start(int arrivals) const {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(place), "r"(arrivals));
  }
  __device__ __forceinline__ void arrive() const { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(place) : "memory"); }
  __device__ __forceinline__ void arrive_and_expect(unsigned bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place), "r"(bytes) : "memory");
  }
  __device__ __forceinline__ void wait(unsigned parity) const {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra.uni over;\nbra.uni again;\nover:\n}"
        ::"r"(place), "r"(parity) : "memory");
  }
};

__device__ __forceinline__ void bulk_copy(Shared target, const void* source, unsigned bytes, Barrier barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(target), "l"(source), "r"(bytes),
               "r"(barrier.place) : "memory");
}

// Returns the descriptor of 32 bytes of each row: 8 rows are 128 bytes apart from the next 8, and 16 bytes of a row `height` x 16 bytes.
__device__ __forceinline__ unsigned long long described(Shared place, int height) {
  return place >> 4 | static_cast<unsigned long long>(height) << 16 | 8ull << 32;
}

#define FOUR(C, i) C(d[i]), C(d[i + 1]), C(d[i + 2]), C(d[i + 3])
#define SIXTEEN(C, i) FOUR(C, i), FOUR(C, i + 4), FOUR(C, i + 8), FOUR(C, i + 12)
#define ALL_SUMS(C) SIXTEEN(C, 0), SIXTEEN(C, 16), SIXTEEN(C, 32), SIXTEEN(C, 48), SIXTEEN(C, 64), SIXTEEN(C, 80), SIXTEEN(C, 96), SIXTEEN(C, 112)
#define SUMS_TEXT \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, " \
  "%29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, " \
  "%56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, " \
  "%83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, " \
  "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}"

// Counts of common bits; 32 bytes are 256 bits.
struct CommonBits {
  using Sum = int;
  static constexpr int CHAIN = STEP / 32;  // instructions between two `settle`

  static __device__ __forceinline__ void add(int (&d)[SUMS], unsigned long long a, unsigned long long b) {
    asm volatile(
        "{.reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc " SUMS_TEXT ", %128, %129, p;}"
        : ALL_SUMS("+r") : "l"(a), "l"(b));
  }
  static __device__ __forceinline__ void settle(int (&)[SUMS]) {}
};

// Sums of powers of 2 in chains; each chain begins with the largest power so far. Powers are 2^(G w) with integers w, and a chain has less
// than 2^G terms, so that a sum s has the largest term 2^(G floor(log_2(s) / G)): clearing the mantissa and the exponent's last log_2(G) bits
// leaves that term.
template <int G> struct Powers {
  static_assert(G == 4 || G == 8, "a power of 2 whose chains have the terms of whole instructions");
  using Sum = float;
  static constexpr int CHAIN = G == 8 ? STEP / 32 : 1;
  static constexpr int SHIFT = G == 8 ? 26 : 25;

  static __device__ __forceinline__ void add(float (&d)[SUMS], unsigned long long a, unsigned long long b) {
    asm volatile(
        "{.reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " SUMS_TEXT ", %128, %129, p, 1, 1, 0, 0;}"
        : ALL_SUMS("+f") : "l"(a), "l"(b));
  }
  static __device__ __forceinline__ void settle(float (&d)[SUMS]) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) d[i] = __uint_as_float(__float_as_uint(d[i]) >> SHIFT << SHIFT);
  }
};

#undef FOUR
#undef SIXTEEN
#undef ALL_SUMS
#undef SUMS_TEXT

// The tiles of products of a batch: `tall` x `wide` tiles a matrix, and `slices` of STEP bytes a row.
struct Tiles {
  int tall, wide, batch, slices;
};

// A thread block's tiles, one after the other. Tile rows that run together share B in the cache.
struct TileWalk {
  static constexpr int TOGETHER = 8;
  const Tiles tiles;
  int number, matrix, top, left;

  __device__ __forceinline__ explicit TileWalk(Tiles tiles) : tiles(tiles), number(blockIdx.x) {}
  __device__ __forceinline__ bool next() {
    const int each = tiles.tall * tiles.wide, bundle = TOGETHER * tiles.wide;
    if (number >= each * tiles.batch) return false;
    const int tile = number % each, first = tile / bundle * TOGETHER, rows = min(TOGETHER, tiles.tall - first);
    matrix = number / each, top = first + tile % bundle % rows, left = tile % bundle / rows;
    number += gridDim.x;
    return true;
  }
};

// Calls store(sums, matrix, tile row, tile column, row of the warpgroup) for the tiles of A B, with operands as described above.
template <class Instruction, int GROUPS, int STAGES, class Store>
__device__ __forceinline__ void multiply_tiles(const char* A, const char* B, Tiles tiles, const Store& store) {
  static_assert(GROUPS == 2, "the registers of three warpgroups hold no tile");
  constexpr unsigned A_BYTES = down<GROUPS> * STEP, B_BYTES = ACROSS * STEP;
  extern __shared__ __align__(128) char shared[];
  __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
  const Shared buffers = shared_address(shared), filled = shared_address(barriers), emptied = filled + 8 * STAGES;
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) Barrier{filled + 8 * s}.start(1), Barrier{emptied + 8 * s}.start(4 * GROUPS);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  int stage = 0;
  unsigned parity = 0;
  auto next = [&]() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  };

  if (group == GROUPS) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(40));
    if (threadIdx.x % 128 == 0)
      for (TileWalk at(tiles); at.next();) {
        const char* a = A + (static_cast<long long>(at.matrix) * tiles.tall + at.top) * tiles.slices * A_BYTES;
        const char* b = B + (static_cast<long long>(at.matrix) * tiles.wide + at.left) * tiles.slices * B_BYTES;
        for (int slice = 0; slice < tiles.slices; slice++, a += A_BYTES, b += B_BYTES, next()) {
          const Barrier barrier{filled + 8 * stage};
          const Shared buffer = buffers + stage * stage_bytes<GROUPS>;
          Barrier{emptied + 8 * stage}.wait(parity ^ 1);
          barrier.arrive_and_expect(A_BYTES + B_BYTES);
          bulk_copy(buffer, a, A_BYTES, barrier);
          bulk_copy(buffer + A_BYTES, b, B_BYTES, barrier);
        }
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(232));
    for (TileWalk at(tiles); at.next();) {
      typename Instruction::Sum sums[SUMS];
      fill(sums, typename Instruction::Sum(0));
      for (int slice = 0; slice < tiles.slices; slice++, next()) {
        const Shared buffer = buffers + stage * stage_bytes<GROUPS>;
        unsigned long long a = described(buffer + group * 64 * 16, down<GROUPS>), b = described(buffer + A_BYTES, ACROSS);
        Barrier{filled + 8 * stage}.wait(parity);
#pragma unroll
        for (int start = 0; start < STEP / 32; start += Instruction::CHAIN) {
          asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
          for (int i = start; i < start + Instruction::CHAIN; i++)
            Instruction::add(sums, a + i * 2 * down<GROUPS>, b + i * 2 * ACROSS);
          asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
          if (start + Instruction::CHAIN == STEP / 32 && threadIdx.x % 32 == 0) Barrier{emptied + 8 * stage}.arrive();
          Instruction::settle(sums);
        }
      }
      store(sums, at.matrix, at.top, at.left, group * 64);
    }
  }
}
#endif
