// Products with special kernels, C <- C + A x B: stacks of small matrices, products of few steps, thin ones, and a matrix and a vector.
#pragma once

#include "tile.cuh"

// A launch whose operands are checked while they are read.
template <class S> struct CheckedProducts { CHECKEDPRODUCTS_FIELDS };

// A launch of floats that are compared as the integers of their bits; numbers with a sign are beyond the bounds.
template <class S> struct SignlessProducts { CHECKEDPRODUCTS_FIELDS };

// The treatment of each element that a launch reads: no check by default.
template <class Launch> struct Check {
  static constexpr bool LOOKS = false;
  __device__ __forceinline__ explicit Check(const Launch&) {}
  template <class E> __device__ __forceinline__ void take(const E&) {}
  __device__ __forceinline__ void tell() const {}
};

// Checks that skim two elements at once, in less time, and take single elements only if skimming leaves a doubt.
template <class S> struct Check<CheckedProducts<S>> : Within<S> {
  static constexpr bool LOOKS = true;
  using E = typename S::Element;
  __device__ __forceinline__ explicit Check(const CheckedProducts<S>& products) : Within<S>(products.bounds) {}
  __device__ __forceinline__ void skim(const E&, const E&) {}
  __device__ __forceinline__ bool doubtful() const { return true; }
};

template <class S> struct Check<SignlessProducts<S>> {
  static constexpr bool LOOKS = true;
  using E = typename S::Element;
  unsigned greatest, bottom, top, seen = 0;
  int* target;
  int beyond = 0;

  static __device__ __forceinline__ unsigned bits(float x) { return __float_as_int(x); }
  static __device__ __forceinline__ unsigned bits_of(long long word) { return bits(float(__longlong_as_double(word))); }
  __device__ __forceinline__ explicit Check(const SignlessProducts<S>& products)
      : greatest(bits_of(products.bounds.greatest)), bottom(bits_of(products.bounds.bottom)), top(bits_of(products.bounds.top)),
        target(products.bounds.beyond) {}
  __device__ __forceinline__ void take(const E& x) {
    if (bits(x.c0) > greatest && bits(x.c0) != bottom && bits(x.c0) != top) beyond = 1;
  }
  __device__ __forceinline__ void skim(const E& x, const E& y) { seen = __vimax3_u32(seen, bits(x.c0), bits(y.c0)); }
  __device__ __forceinline__ bool doubtful() const { return seen > greatest; }
  __device__ __forceinline__ void tell() const {
    if (beyond) *target = 1;
  }
};

// A stack of matrices of at most SIDE x SIDE elements: a warp has one matrix, with all operands in shared memory. A lane's rows are 8
// apart, and its columns 4 apart. With a witness, only a strictly better candidate replaces an element, from the lowest k on.
template <class S, int SIDE, int WARPS, bool WITNESS, class Launch> __device__ __forceinline__ void multiply_stack(const Launch& products) {
  using E = typename S::Element;
  constexpr int TM = SIDE / 8, TN = SIDE / 4, PITCH = SIDE + 1;  // eight rows of a column lie in eight banks
  __shared__ E a_of[WARPS][SIDE * PITCH], b_of[WARPS][SIDE * SIDE];
  if (!products.predicate.holds()) return;
  const Product<S>& product = products.product[0];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, down = lane / 4, across = lane % 4;
  const long long number = blockIdx.x * static_cast<long long>(WARPS) + warp;
  if (number >= product.tiles) return;
  DeviceMatrix<S> A = product.A, B = product.B, C = product.C;
  S::advance(A.pointers, number * A.batch);
  S::advance(B.pointers, number * B.batch);
  S::advance(C.pointers, number * C.batch);
  const int m = product.m, n = product.n, k = product.k;
  E *const a = a_of[warp], *const b = b_of[warp];
  Check<Launch> check(products);
#pragma unroll
  for (int e = 0; e < SIDE * SIDE; e += 32) {
    const int r = (e + lane) / SIDE, c = (e + lane) % SIDE;
    if (r < m && c < k) check.take(a[r * PITCH + c] = S::get(A.pointers, A.at(r, c)));
    if (r < k && c < n) check.take(b[r * SIDE + c] = S::get(B.pointers, B.at(r, c)));
  }
  check.tell();
  E total[TM][TN];
  int winner[TM][TN];
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) {
      const int r = down + 8 * i, c = across + 4 * j;
      total[i][j] = S::zero();
      if (WITNESS && !product.fresh && r < m && c < n) total[i][j] = S::add(total[i][j], S::get(C.pointers, C.at(r, c)));
      if (WITNESS) winner[i][j] = -1;
    }
  __syncwarp();
#pragma unroll 2
  for (int step = 0; step < k; step++) {
    E left[TM], right[TN];
#pragma unroll
    for (int i = 0; i < TM; i++) left[i] = a[(down + 8 * i) * PITCH + step];
#pragma unroll
    for (int j = 0; j < TN; j++) right[j] = b[step * SIDE + across + 4 * j];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++) {
        const E found = S::add(total[i][j], S::mul(left[i], right[j]));
        if (WITNESS && !S::same(found, total[i][j])) winner[i][j] = step;
        total[i][j] = found;
      }
  }
  auto* const via = product.witness.via + number * product.witness.batch;
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) {
      const int r = down + 8 * i, c = across + 4 * j;
      if (r >= m || c >= n) continue;
      if (!WITNESS && !product.fresh) total[i][j] = S::add(S::get(C.pointers, C.at(r, c)), total[i][j]);
      S::put(C.pointers, C.at(r, c), total[i][j]);
      if (WITNESS && (product.fresh || winner[i][j] >= 0))
        via[r * product.witness.row + c] = winner[i][j] < 0 ? -1 : int(product.witness.first) + winner[i][j];
    }
}

// Copies an operand of at most ALL rows of WIDTH vectors to shared memory: each of THREADS threads copies a vector of every EACH-th row.
// Single numbers are checked on the way. WHOLE asserts that all rows exist.
template <class S, int ALL, int WIDTH, int THREADS, bool VECTORS, bool WHOLE, class Launch, class E = typename S::Element>
__device__ __forceinline__ void bring(Vector<E>* to, int pitch, const DeviceMatrix<S>& X, int rows, int columns, Check<Launch>& check) {
  constexpr int V = Vector<E>::length, EACH = THREADS / WIDTH;
  const int top = threadIdx.x / WIDTH, vector = threadIdx.x % WIDTH, first = vector * V;
  if constexpr (VECTORS) {
    if (first >= columns) return;
    const long long step = EACH * X.row;
    const auto* from = X.pointers.c0 + X.at(top, first);
    const Shared target = shared_address(&to[top * pitch + vector]);
#pragma unroll
    for (int r = 0; r < ALL; r += EACH, from += step)
      if (WHOLE || top + r < rows) copy_async<16>(target + r * pitch * 16, from, true);
  } else {
    long long at = X.at(top, first);
#pragma unroll 4
    for (int r = top; r < ALL; r += EACH, at += EACH * X.row)
#pragma unroll
      for (int q = 0; q < V; q++) {
        E& target = to[r * pitch + vector].element[q];
        target = S::zero();
        if (r < rows && first + q < columns) check.take(target = S::get(X.pointers, at + q * X.column));
      }
  }
}

// Checks the vectors that a thread has copied: skims them, or takes each element.
template <class S, int ALL, int WIDTH, int THREADS, bool WHOLE, bool SKIM, class Launch, class E = typename S::Element>
__device__ __forceinline__ void look(const Vector<E>* from, int pitch, int rows, int columns, Check<Launch>& check) {
  constexpr int V = Vector<E>::length, EACH = THREADS / WIDTH, UNROLLED = SKIM ? ALL / EACH : 2;
  const int top = threadIdx.x / WIDTH, vector = threadIdx.x % WIDTH;
  if (vector * V >= columns) return;
#pragma unroll UNROLLED
  for (int r = 0; r < ALL; r += EACH) {
    if (!WHOLE && top + r >= rows) break;
    const Vector<E> some = from[(top + r) * pitch + vector];
#pragma unroll
    for (int q = 0; q < V; q += 2)
      if constexpr (SKIM)
        check.skim(some.element[q], some.element[q + 1]);
      else
        check.take(some.element[q]), check.take(some.element[q + 1]);
  }
}

// Products of at most DEPTH steps. A thread block has a matrix of a stack, of at most ROWS x COLUMNS elements, or some tiles of that size,
// one below the other: B is copied to shared memory once, and the next tile's part of A during the current tile. A thread has TM rows of a
// tile, and TN columns in vectors. VECTORS asserts that all rows begin and end at multiples of a vector.
template <class S, int ROWS, int COLUMNS, int DEPTH, int TM, int TN, bool STACK, bool VECTORS, class Launch>
__device__ __forceinline__ void multiply_shallow(const Launch& products) {
  using E = typename S::Element;
  constexpr int V = Vector<E>::length, DOWN = ROWS / TM, ACROSS = COLUMNS / TN, THREADS = DOWN * ACROSS;
  constexpr int PITCH = DEPTH / V + 1, WIDTH = COLUMNS / V;  // in vectors; neighbouring rows of A lie in other banks
  constexpr int HELD = STACK ? V : 2;                        // steps of A that a thread has in registers
  constexpr int UNROLLED = COLUMNS < 64 ? 3 : 1;             // as measured
  static_assert(HELD % S::steps == 0);
  __shared__ Vector<E> a[STACK ? 1 : 2][ROWS * PITCH], b[DEPTH * WIDTH];
  if (!products.predicate.holds()) return;
  const Product<S>& product = products.product[0];
  DeviceMatrix<S> A = product.A, B = product.B, C = product.C;
  int m = product.m, n = product.n;
  const int k = product.k, y = threadIdx.x / ACROSS, x = threadIdx.x % ACROSS;
  bool look_at_a = true, look_at_b = true;  // each element once: in the first tile of its row or column
  if constexpr (STACK) {
    S::advance(A.pointers, blockIdx.x * A.batch);
    S::advance(B.pointers, blockIdx.x * B.batch);
    S::advance(C.pointers, blockIdx.x * C.batch);
  } else {
    const int across = (n + COLUMNS - 1) / COLUMNS, rows = int(product.depth) * ROWS;
    const int top = blockIdx.x / across * rows, left = blockIdx.x % across * COLUMNS;
    S::advance(A.pointers, A.at(top, 0));
    S::advance(B.pointers, B.at(0, left));
    S::advance(C.pointers, C.at(top, left));
    look_at_a = left == 0, look_at_b = top == 0;
    m = min(m - top, rows), n = min(n - left, COLUMNS);
  }

  Check<Launch> check(products);
  const auto bring_a = [&](Vector<E>* to) {
    if (VECTORS && m >= ROWS)
      bring<S, ROWS, DEPTH / V, THREADS, VECTORS, true>(to, PITCH, A, m, k, check);
    else
      bring<S, ROWS, DEPTH / V, THREADS, VECTORS, false>(to, PITCH, A, m, k, check);
    if constexpr (VECTORS) commit_copies();
  };
  bring<S, DEPTH, WIDTH, THREADS, VECTORS, false>(b, WIDTH, B, k, n, check);
  bring_a(a[0]);
#pragma unroll 1
  for (int now = 0;; now = 1 - now) {
    const bool whole = VECTORS && m >= ROWS && n == COLUMNS;
    if constexpr (VECTORS) wait_for_copies<0>();
    __syncthreads();  // this tile's operands have arrived, and nobody reads the last tile's any more
    const int rows = m;
    if constexpr (!STACK) {
      m -= ROWS;
      S::advance(A.pointers, ROWS * A.row);
      if (m > 0) bring_a(a[1 - now]);
    }
    if constexpr (VECTORS && Check<Launch>::LOOKS) {
      if (look_at_a) {
        if (whole) look<S, ROWS, DEPTH / V, THREADS, true, true>(a[now], PITCH, rows, k, check);
        if (!whole || check.doubtful()) look<S, ROWS, DEPTH / V, THREADS, false, false>(a[now], PITCH, rows, k, check);
      }
      if (look_at_b) look<S, DEPTH, WIDTH, THREADS, false, false>(b, WIDTH, k, n, check);
      look_at_b = false;
    }

    E total[TM][TN];
    fill(total, S::zero());
    const auto* lefts = reinterpret_cast<const Vector<E, HELD>*>(a[now] + y * PITCH);
    const Vector<E>* rights = b + x;
    const auto accumulate = [&] {
      Vector<E, HELD> left[TM];
#pragma unroll
      for (int i = 0; i < TM; i++) left[i] = lefts[DOWN * i * PITCH * (V / HELD)];
#pragma unroll
      for (int q = 0; q < HELD; q += S::steps) {
        Vector<E> right[S::steps][TN / V];
#pragma unroll
        for (int s = 0; s < S::steps; s++)
#pragma unroll
          for (int j = 0; j < TN / V; j++) right[s][j] = rights[(q + s) * WIDTH + ACROSS * j];
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
          for (int j = 0; j < TN; j++) {
            E from_a[S::steps], from_b[S::steps];
#pragma unroll
            for (int s = 0; s < S::steps; s++) from_a[s] = left[i].element[q + s], from_b[s] = right[s][j / V].element[j % V];
            S::accumulate(total[i][j], from_a, from_b, i * TN + j);
          }
      }
      lefts++, rights += HELD * WIDTH;
    };
    accumulate();  // peeled, so that the initial sums take no registers
#pragma unroll UNROLLED
    for (int step = HELD; step < k; step += HELD) accumulate();
    if (whole && product.fresh) {
      auto* to = C.pointers.c0 + C.at(y, x * V);
      const long long step = DOWN * C.row;
#pragma unroll
      for (int i = 0; i < TM; i++, to += step)
#pragma unroll
        for (int j = 0; j < TN; j += V) {
          Vector<E> found;
#pragma unroll
          for (int q = 0; q < V; q++) found.element[q] = total[i][j + q];
          if constexpr (VECTORS) S::put_vector({to}, ACROSS * j, found);
        }
    } else {
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += V) {
          const int r = y + DOWN * i, c = x * V + ACROSS * j;
          if (r >= rows || c >= n) continue;
          const long long at = C.at(r, c);
          if constexpr (VECTORS) {
            Vector<E> found, old;
            if (!product.fresh) old = S::get_vector(C.pointers, at);
#pragma unroll
            for (int q = 0; q < V; q++) found.element[q] = product.fresh ? total[i][j + q] : S::add(old.element[q], total[i][j + q]);
            S::put_vector(C.pointers, at, found);
          } else {
#pragma unroll
            for (int q = 0; q < V; q++) {
              if (c + q >= n) continue;
              const long long place = at + q * C.column;
              S::put(C.pointers, place, product.fresh ? total[i][j + q] : S::add(S::get(C.pointers, place), total[i][j + q]));
            }
          }
        }
    }
    if (STACK || m <= 0) break;
    S::advance(C.pointers, ROWS * C.row);
  }
  check.tell();
}

// A x B of few steps where the result, or each of a stack, has at most SHORT columns, or with SHORT_ROWS at most SHORT rows. A thread has a
// whole row, or column, of the result and reads the same row of A, or column of B. The threads of a matrix share the other operand.
template <class S, int SHORT, bool SHORT_ROWS, bool WITNESS, class Launch>
__device__ __forceinline__ void multiply_thin(const Launch& products) {
  using E = typename S::Element;
  if (!products.predicate.holds()) return;
  const Product<S>& product = products.product[0];
  const int k = product.k, length = SHORT_ROWS ? product.n : product.m, width = SHORT_ROWS ? product.m : product.n;
  const long long thread = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x, number = thread / length;
  const int place = int(thread % length);
  if (number >= product.tiles) return;
  DeviceMatrix<S> A = product.A, B = product.B, C = product.C;
  S::advance(A.pointers, number * A.batch);
  S::advance(B.pointers, number * B.batch);
  S::advance(C.pointers, number * C.batch);
  Check<Launch> check(products);
  E total[SHORT];
  int winner[SHORT];
#pragma unroll
  for (int s = 0; s < SHORT; s++) {
    total[s] = S::zero();
    if (WITNESS && !product.fresh && s < width)
      total[s] = S::add(total[s], S::get(C.pointers, SHORT_ROWS ? C.at(s, place) : C.at(place, s)));
    winner[s] = -1;
  }
#pragma unroll 2
  for (int step = 0; step < k; step++) {
    const E own = SHORT_ROWS ? S::get(B.pointers, B.at(step, place)) : S::get(A.pointers, A.at(place, step));
    check.take(own);
#pragma unroll
    for (int s = 0; s < SHORT; s++) {
      if (s >= width) continue;
      const E shared = SHORT_ROWS ? S::get(A.pointers, A.at(s, step)) : S::get(B.pointers, B.at(step, s));
      if (place == 0) check.take(shared);
      const E found = S::add(total[s], SHORT_ROWS ? S::mul(shared, own) : S::mul(own, shared));
      if (WITNESS && !S::same(found, total[s])) winner[s] = step;
      total[s] = found;
    }
  }
  check.tell();
#pragma unroll
  for (int s = 0; s < SHORT; s++) {
    if (s >= width) continue;
    const int r = SHORT_ROWS ? s : place, c = SHORT_ROWS ? place : s;
    const long long at = C.at(r, c);
    S::put(C.pointers, at, WITNESS || product.fresh ? total[s] : S::add(S::get(C.pointers, at), total[s]));
    if (WITNESS && (product.fresh || winner[s] >= 0))
      product.witness.via[number * product.witness.batch + r * product.witness.row + c] =
          winner[s] < 0 ? -1 : int(product.witness.first) + winner[s];
  }
}

// A x B for a column B, as fast as A is read. A warp reads B once for ROWS rows of A, and lanes have neighbouring elements.
template <class S, int WARPS, int ROWS, bool VECTORS, class Launch> __device__ __forceinline__ void multiply_column(const Launch& products) {
  using E = typename S::Element;
  constexpr int V = VECTORS ? Vector<E>::length : 1;
  if (!products.predicate.holds()) return;
  const Product<S>& product = products.product[0];
  const DeviceMatrix<S>&A = product.A, &B = product.B, &C = product.C;
  const int lane = threadIdx.x % 32, m = product.m, k = product.k;
  const int top = (blockIdx.x * WARPS + threadIdx.x / 32) * ROWS;
  if (top >= m) return;
  Check<Launch> check(products);
  E total[ROWS];
  fill(total, S::zero());
  const int whole = k / V * V;
#pragma unroll 2
  for (int step = lane * V; step < whole; step += 32 * V) {
    Vector<E, V> left[ROWS];
    E right[V];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      const long long at = A.at(min(top + i, m - 1), step);
      if constexpr (VECTORS)
        left[i] = S::get_vector(A.pointers, at);
      else
        left[i].element[0] = S::get(A.pointers, at);
    }
#pragma unroll
    for (int q = 0; q < V; q++) check.take(right[q] = S::get(B.pointers, B.at(step + q, 0)));
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
      for (int q = 0; q < V; q++) check.take(left[i].element[q]), total[i] = S::add(total[i], S::mul(left[i].element[q], right[q]));
  }
  if (whole + lane < k) {
    const E right = S::get(B.pointers, B.at(whole + lane, 0));
    check.take(right);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      const E left = S::get(A.pointers, A.at(min(top + i, m - 1), whole + lane));
      check.take(left), total[i] = S::add(total[i], S::mul(left, right));
    }
  }
  check.tell();
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
#pragma unroll
    for (int bit = 16; bit > 0; bit /= 2) total[i] = S::add(total[i], of_other_lane(total[i], bit));
    if (lane == 0 && top + i < m) {
      const long long at = C.at(top + i, 0);
      S::put(C.pointers, at, product.fresh ? total[i] : S::add(S::get(C.pointers, at), total[i]));
    }
  }
}

// A x B for a row A: a thread has neighbouring columns of B, and a block some of the steps; the blocks' sums are a batch of results.
template <class S, int THREADS, bool VECTORS, class Launch> __device__ __forceinline__ void multiply_row(const Launch& products) {
  using E = typename S::Element;
  constexpr int V = VECTORS ? Vector<E>::length : 1;
  if (!products.predicate.holds()) return;
  const Product<S>& product = products.product[0];
  const DeviceMatrix<S>&A = product.A, &B = product.B;
  DeviceMatrix<S> C = product.C;
  const int n = product.n, k = product.k, across = (n + THREADS * V - 1) / (THREADS * V);
  const int part = blockIdx.x / across, column = (blockIdx.x % across * THREADS + threadIdx.x) * V;
  if (column >= n) return;
  const int first = part * int(product.depth), last = min(k, first + int(product.depth));
  Check<Launch> check(products);
  E total[V];
#pragma unroll
  for (int q = 0; q < V; q++) total[q] = S::zero();
#pragma unroll 8
  for (int step = first; step < last; step++) {
    const E left = S::get(A.pointers, A.at(0, step));
    check.take(left);
    Vector<E, V> right;
    if constexpr (VECTORS)
      right = S::get_vector(B.pointers, B.at(step, column));
    else
      right.element[0] = S::get(B.pointers, B.at(step, column));
#pragma unroll
    for (int q = 0; q < V; q++) check.take(right.element[q]), total[q] = S::add(total[q], S::mul(left, right.element[q]));
  }
  check.tell();
  S::advance(C.pointers, part * C.batch);
#pragma unroll
  for (int q = 0; q < V; q++)
    if (column + q < n) {
      const long long at = C.at(0, column + q);
      S::put(C.pointers, at, product.fresh ? total[q] : S::add(S::get(C.pointers, at), total[q]));
    }
}
