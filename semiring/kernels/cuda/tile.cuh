// A thread block's work in a product: a tile of C, the stages of A and B in shared memory, and a thread's fragments and accumulators.
#pragma once

#include "arithmetic.cuh"

// A condition for a launch.
struct LaunchPredicate {
  LAUNCHPREDICATE_FIELDS

  __device__ __forceinline__ bool holds() const { return signs == nullptr || *signs == value; }
};

template <class S> struct Witness { WITNESS_FIELDS };
template <class S> struct Product { PRODUCT_FIELDS };

// The independent products of one launch, one after the other in the grid.
template <class S, int COUNT> struct Products {
  PRODUCTS_FIELDS

  // Returns the product with tile `number` of the launch, and makes `number` relative to that product.
  __device__ __forceinline__ const Product<S>& of(int& number) const {
    int p = 0;
    for (; p + 1 < COUNT && number >= product[p].tiles; p++) number -= product[p].tiles;
    return product[p];
  }
};

// The tile of a thread block, within one of the products, and the register tile of a thread: rows from `row` on, BM / TM apart, and vectors
// of columns from `column` on. It is computed before the main loop and again after it, to leave registers to the accumulators.
template <class S, int BM, int BN, int TM, int TN> struct Task {
  static constexpr int V = Vector<typename S::Element>::length, WARPS = BN / TN / 8;
  static constexpr int THREADS = (BM / TM) * (BN / TN), DOWN = BM / TM, ACROSS = BN / (TN / V);
  static constexpr int GROUP = 8;  // block rows that run together and share B in the cache
  DeviceMatrix<S> A, B, C;
  Witness<S> witness;
  int m, n, k;
  bool fresh;
  int thread, top, left;  // of the tile
  int row, column;        // in the tile

  template <int COUNT> __device__ __forceinline__ explicit Task(const Products<S, COUNT>& products) : thread(thread_number()) {
    int number = block_number();
    const Product<S>& product = products.of(number);
    A = product.A, B = product.B, C = product.C, witness = product.witness;
    m = product.m, n = product.n, k = product.k, fresh = product.fresh;
    const int across = (n + BN - 1) / BN, down = (m + BM - 1) / BM;
    int part = 0;  // counted, because quotients would take registers from the accumulators
    for (; number >= across * down; part++) number -= across * down;
    const int begin = part * int(product.depth);
    k = min(k - begin, int(product.depth));
    S::advance(A.pointers, blockIdx.y * A.batch + begin * A.column);
    S::advance(B.pointers, blockIdx.y * B.batch + begin * B.row);
    S::advance(C.pointers, (blockIdx.y + part) * C.batch);
    S::advance(witness.transposed.pointers, blockIdx.y * witness.transposed.batch);
    witness.via += blockIdx.y * witness.batch;

    const int group = number / (GROUP * across), in_group = number % (GROUP * across);
    const int rows = min(GROUP, down - group * GROUP);
    top = (group * GROUP + in_group % rows) * BM, left = in_group / rows * BN;
    const int warp = thread / 32, lane = thread % 32;
    row = warp / WARPS * 4 + lane / 8, column = (warp % WARPS * 8 + lane % 8) * V;
  }

  // Returns true if C can be accessed by vectors.
  __device__ __forceinline__ bool vectors() const { return S::vectors && C.column == 1 && C.row % V == 0 && S::aligned(C.pointers); }
};

// A stage in shared memory: a slice of A, BM x BK, followed by a slice of B, BK x BN.
template <class S, int BM, int BN, int BK> struct StageLayout {
  using E = typename S::Element;
  static constexpr int V = Vector<E>::length;
  static constexpr int a_row = BK + V;  // a row of the slice of A, padded by one vector
  static constexpr int b_begin = BM * a_row, size = b_begin + BK * BN;
};

// The way to read a slice: by vectors along rows, or single elements along rows or down columns.
enum class Access { vectors, rows, columns };

// Copies slices of ROWS x COLUMNS elements of X to shared memory, one after the other: along X's columns for A, along its rows for B. An
// element is S::lanes numbers, neighbours in that direction. Elements beyond C are skipped: no kept result depends on them.
template <class S, int ROWS, int COLUMNS, int PITCH, int THREADS, bool IS_A, Access ACCESS> struct Stager {
  using E = typename S::Element;
  static constexpr bool DOWN_COLUMNS = ACCESS == Access::columns, VECTORS = ACCESS == Access::vectors;
  static constexpr bool INTERLEAVE = VECTORS && !IS_A && S::lanes == 2;  // an element's numbers come from two rows
  static constexpr bool ALONG_K = IS_A == DOWN_COLUMNS;                  // a thread's copies follow each other along k
  static constexpr int WIDTH = VECTORS ? Vector<E>::length * (INTERLEAVE ? 2 : 1) : 1;
  static constexpr int PER_LINE = DOWN_COLUMNS ? ROWS : COLUMNS / WIDTH, STEP = THREADS / PER_LINE;
  static constexpr int COPIES = ROWS * COLUMNS / WIDTH / THREADS;
  static_assert(THREADS % PER_LINE == 0 && COPIES * WIDTH * THREADS == ROWS * COLUMNS, "the threads divide a slice");

  typename S::Pointers source;             // this thread's first element in the next slice
  const long long row, column, k, stride;  // distances in numbers: down, across, along k, and between a thread's copies
  const int i, j;                          // position of the first element in a slice
  const int within;                        // distance to the edge of C
  const int place;                         // offset in shared memory
  const Shared first;                      // address in the first buffer

  __device__ __forceinline__ Stager(const DeviceMatrix<S>& X, E* stages, int top, int left, int end, int thread)
      : source(X.pointers), row(IS_A ? X.row : X.row * S::lanes), column((VECTORS ? 1 : X.column) * (IS_A ? S::lanes : 1)),
        k(IS_A ? column / S::lanes : X.row), stride(STEP * (DOWN_COLUMNS ? column : row)),
        i(DOWN_COLUMNS ? thread % PER_LINE : thread / PER_LINE),
        j(DOWN_COLUMNS ? thread / PER_LINE : thread % PER_LINE * WIDTH), within(end - (IS_A ? top + i : left + j)),
        place(i * PITCH + j), first(kept(shared_address(stages + place))) {
    S::advance(source, X.at(top, left) + i * row + j * column);
  }

  __device__ __forceinline__ bool inside(int s) const { return (ALONG_K ? 0 : s * STEP) < within; }
  static __device__ __forceinline__ constexpr int apart(int s) { return s * STEP * (DOWN_COLUMNS ? 1 : PITCH); }

  // Copies a whole slice; `offset` is that of the buffer.
  __device__ __forceinline__ void stage(int offset) {
    auto at = source;
#pragma unroll
    for (int s = 0; s < COPIES; s++) {
      const Shared target = first + (offset + apart(s)) * sizeof(E);
      if constexpr (VECTORS) {
        copy_async<16>(target, at.c0, inside(s));
        if constexpr (INTERLEAVE) copy_async<16>(target + 16, at.c0 + k, inside(s));
      } else {
        S::fetch(target, at, k, inside(s));
      }
      S::advance(at, stride);
    }
    if constexpr (ALONG_K)
      source = at;
    else
      S::advance(source, IS_A ? COLUMNS * column : ROWS * row);
  }

  // Copies the last slice, of `steps` steps, and fills it with zeros.
  __device__ __forceinline__ void stage_rest(E* slice, int steps) const {
#pragma unroll 1
    for (int e = 0; e < COPIES * WIDTH; e++) {
      const int s = e / WIDTH, w = e % WIDTH, before = (IS_A ? j + w : i) + (ALONG_K ? s * STEP : 0);
      const bool there = inside(s) && (IS_A || w < within);
      slice[place + apart(s) + w] = S::part(source, s * stride + w * column, k, there ? steps - before * S::lanes : 0);
    }
  }

  // Builds elements from the numbers that this thread has copied, once the copies have arrived.
  __device__ __forceinline__ void arrive(E* slice) const {
    if constexpr (INTERLEAVE)
#pragma unroll
      for (int s = 0; s < COPIES; s++) S::interleave(slice + place + apart(s));
  }
};

// A thread's operands in registers, for STEPS steps.
template <class S, int STEPS, int TM, int TN> struct Fragments {
  using E = typename S::Element;
  static constexpr int V = Vector<E>::length, LINE = STEPS < V ? STEPS : V;
  Vector<E, LINE> a[TM][STEPS / LINE];
  Vector<E> b[STEPS][TN / V];

  // Loads from the thread's first row of A and first column of B.
  template <int A_ROW, int DOWN, int B_ROW, int ACROSS> __device__ __forceinline__ void load(const E* from_a, const E* from_b) {
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int d = 0; d < STEPS / LINE; d++) a[i][d] = *reinterpret_cast<const Vector<E, LINE>*>(from_a + i * DOWN * A_ROW + d * LINE);
#pragma unroll
    for (int p = 0; p < STEPS; p++)
#pragma unroll
      for (int j = 0; j < TN / V; j++) b[p][j] = *reinterpret_cast<const Vector<E>*>(from_b + p * B_ROW + j * ACROSS);
  }

  __device__ __forceinline__ void add_to(E (&sum)[TM][TN]) const {
#pragma unroll
    for (int q = 0; q < STEPS; q += S::steps)
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) {
          E left[S::steps], right[S::steps];
#pragma unroll
          for (int p = 0; p < S::steps; p++) {
            left[p] = a[i][(q + p) / LINE].element[(q + p) % LINE];
            right[p] = b[q + p][j / V].element[j % V];
          }
          S::accumulate(sum[i][j], left, right, i * TN + j);
        }
  }
};

// c <- c + a x b, a single step.
template <class S> __device__ __forceinline__ void accumulate_one(typename S::Element& c, typename S::Element a, typename S::Element b) {
  if constexpr (S::steps == 1)
    S::accumulate(c, &a, &b);
  else
    c = S::add(c, S::candidate(a, b));
}

// Sums, beginning with zeros.
template <class S, int TM, int TN, bool WITNESS> struct Accumulators {
  using E = typename S::Element;
  E total[TM][TN];

  __device__ __forceinline__ Accumulators() { fill(total, S::zero()); }
  __device__ __forceinline__ void begin() {}
  __device__ __forceinline__ void end(int slab) {}
};

// Sums with a witness, beginning with C; `won` holds the number of the last slab that improved each sum, two per register.
template <class S, int TM, int TN> struct Accumulators<S, TM, TN, true> {
  using E = typename S::Element;
  static constexpr unsigned NO_SLAB = 0xffff;
  E total[TM][TN], before[TM][TN];
  unsigned won[TM][TN / 2];

  __device__ __forceinline__ Accumulators() {
    fill(total, S::zero());
    fill(won, 0xffffffffu);
  }
  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++) before[i][j] = total[i][j];
  }
  __device__ __forceinline__ void end(int slab) {
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++)
        if (!S::same(total[i][j], before[i][j])) won[i][j / 2] = __byte_perm(won[i][j / 2], slab, j % 2 ? 0x5410 : 0x3254);
  }
  __device__ __forceinline__ unsigned slab(int i, int j) const { return j % 2 ? won[i][j / 2] >> 16 : won[i][j / 2] & NO_SLAB; }
};
