// Rows and columns of a closure from the panels of a sparse elimination, see kernels/cpu/sweeps.py.
//
// A warp has a vector X for each of 32 sources, one per lane: all lanes read the same entry of a panel at a time, and no lane reads another
// lane's writes. Sources come in the order of elimination, so that the sources of a warp share most supernodes above them.
//
// S is the semiring as `summing_structs` writes it: elements of X are encoded, and decoded for the caller.
#pragma once

#include "arithmetic.cuh"

constexpr int LANES = 32;

template <class S> struct Sweeps { SWEEPS_FIELDS };

__device__ __forceinline__ int least_of_warp(int x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(0xffffffff, x);
#else
#pragma unroll
  for (int bit = 1; bit < LANES; bit *= 2) x = min(x, __shfl_xor_sync(0xffffffff, x, bit));
  return x;
#endif
}

template <class S, bool BACKWARD> struct Sweeper {
  using E = typename S::Element;
  const Sweeps<S>& sweep;
  typename S::Pointers x, own;  // this lane's elements of the first place
  int *const marks, lane;

  __device__ __forceinline__ explicit Sweeper(const Sweeps<S>& sweep)
      : sweep(sweep), x(sweep.x), own(sweep.own), marks(sweep.marks + blockIdx.x * static_cast<long long>(sweep.supernodes)),
        lane(threadIdx.x) {
    S::advance(x, blockIdx.x * sweep.n * LANES + lane);
    S::advance(own, blockIdx.x * sweep.widest * LANES + lane);
  }

  // Clamps an element at zero before it goes to X.
  __device__ __forceinline__ E kept(const E& e) const { return S::encode(S::decode(e, sweep.threshold)); }

  // total[t] <- total[t] + the sum of x_p times entries of a panel over p = place(i), for COUNT sums. Entries of the sums are `apart`;
  // entries of the next place are `step` further.
  template <int COUNT, class Place>
  __device__ __forceinline__ void add(E (&total)[COUNT], int terms, Place place, typename S::Pointers panel, long long step, long long apart,
                                      int count) const {
#pragma unroll 4
    for (int i = 0; i < terms; i++) {
      const E mine = S::get(x, place(i) * static_cast<long long>(LANES));
#pragma unroll
      for (int t = 0; t < COUNT; t++) {
        const E entry = S::encode(S::get(panel, min(t, count - 1) * apart));
        total[t] = S::add(total[t], BACKWARD ? S::mul(entry, mine) : S::mul(mine, entry));
      }
      S::advance(panel, step);
    }
  }

  // x_R <- x_R + x_S D*U, or backward x_R + LD* x_S, for COUNT places of R.
  template <int COUNT> __device__ __forceinline__ void above(int first, int w, const int* rows, int r, typename S::Pointers panel, int j) {
    const int m = w + r, count = min(r - j, COUNT);
    E total[COUNT];
    fill(total, S::zero());
    S::advance(panel, BACKWARD ? (w + j) * static_cast<long long>(w) : w + j);
    add(total, w, [=](int i) { return first + i; }, panel, BACKWARD ? 1 : m, BACKWARD ? w : 1, count);
#pragma unroll
    for (int t = 0; t < COUNT; t++) {
      if (t >= count) break;
      const long long at = rows[j + t] * static_cast<long long>(LANES);
      S::put(x, at, kept(S::add(S::get(x, at), total[t])));
    }
  }

  // x_S <- x_S D* + x_R LD*, or backward D* x_S + D*U x_R, for COUNT places of S. Without sources below, x_S is zero.
  template <int COUNT>
  __device__ __forceinline__ void below(int first, int w, const int* rows, int r, typename S::Pointers panel, int c, bool active) {
    const int m = w + r, count = min(w - c, COUNT);
    const long long step = BACKWARD ? 1 : w, apart = BACKWARD ? m : 1;
    E total[COUNT];
    fill(total, S::zero());
    S::advance(panel, c * apart);
    if (active) add(total, w, [=](int i) { return first + i; }, panel, step, apart, count);
    S::advance(panel, w * step);
    add(total, r, [=](int i) { return rows[i]; }, panel, step, apart, count);
    const bool aside = active && w > COUNT;  // later places still read the old elements
#pragma unroll
    for (int t = 0; t < COUNT; t++) {
      if (t >= count) break;
      if (aside)
        S::put(own, (c + t) * static_cast<long long>(LANES), kept(total[t]));
      else
        S::put(x, (first + c + t) * static_cast<long long>(LANES), kept(total[t]));
    }
  }

  __device__ __forceinline__ void up(int s) {
    const int first = sweep.columns[s], w = sweep.columns[s + 1] - first, r = int(sweep.row_starts[s + 1] - sweep.row_starts[s]);
    const int* rows = sweep.rows + sweep.row_starts[s];
    typename S::Pointers panel = BACKWARD ? sweep.lower : sweep.upper;
    S::advance(panel, sweep.panel_starts[s]);
    for (int j = 0; j < r; j += 8) above<8>(first, w, rows, r, panel, j);
  }

  __device__ __forceinline__ void down(int s, bool active) {
    const int first = sweep.columns[s], w = sweep.columns[s + 1] - first, r = int(sweep.row_starts[s + 1] - sweep.row_starts[s]);
    const int* rows = sweep.rows + sweep.row_starts[s];
    typename S::Pointers panel = BACKWARD ? sweep.upper : sweep.lower;
    S::advance(panel, sweep.panel_starts[s]);
    if (w <= 4) {
      below<4>(first, w, rows, r, panel, 0, active);
      return;
    }
    for (int c = 0; c < w; c += 8) below<8>(first, w, rows, r, panel, c, active);
    if (active && w > 8)
      for (int c = 0; c < w; c++)
        S::put(x, (first + c) * static_cast<long long>(LANES), S::get(own, c * static_cast<long long>(LANES)));
  }

  // Computes X for up to 32 sources, one per lane; a negative place stands for none.
  __device__ __forceinline__ void run(int start) {
    // Lists the supernodes above the sources, ascending, and clears their rows.
    int node = start < 0 ? int(sweep.supernodes) : sweep.supernode_of[start], ups = 0;
    for (int s; (s = least_of_warp(node)) < sweep.supernodes; ups++) {
      if (lane == 0) marks[ups] = s;
      for (int p = sweep.columns[s]; p < sweep.columns[s + 1]; p++) S::put(x, p * static_cast<long long>(LANES), S::zero());
      if (node == s) node = sweep.parents[s];
    }
    __syncwarp();
    if (start >= 0) S::put(x, start * static_cast<long long>(LANES), S::encode(S::one()));
    for (int i = 0; i < ups; i++) up(marks[i]);
    for (int i = 0; i < sweep.downs; i++) {
      const int s = sweep.down[i];
      while (ups > 0 && marks[ups - 1] > s) ups--;
      down(s, ups > 0 && marks[ups - 1] == s);
    }
    __syncwarp();  // before the next call changes the marks
  }

  // out[to_b, v] <- lane b of X at the v-th place of `ends`.
  __device__ __forceinline__ void gather(long long to) const {
    __shared__ E tile[LANES][LANES + 1];
    for (long long v = 0; v < sweep.targets; v += LANES) {
      const int place = v + lane < sweep.targets ? sweep.ends[v + lane] : 0;
#pragma unroll 8
      for (int i = 0; i < LANES; i++)
        tile[i][lane] = S::get(x, __shfl_sync(0xffffffff, place, i) * static_cast<long long>(LANES));
      __syncwarp();
#pragma unroll 8
      for (int b = 0; b < LANES; b++) {
        const long long row = __shfl_sync(0xffffffff, to, b);
        if (row >= 0 && v + lane < sweep.targets) S::put(sweep.out, row * sweep.stride + v + lane, S::decode(tile[lane][b], sweep.threshold));
      }
      __syncwarp();
    }
  }
};

template <class S, bool BACKWARD> __device__ __forceinline__ void sweep_sources(const Sweeps<S>& sweep) {
  Sweeper<S, BACKWARD> sweeper(sweep);
  for (long long first = blockIdx.x * static_cast<long long>(LANES); first < sweep.sources; first += gridDim.x * static_cast<long long>(LANES)) {
    const bool there = first + threadIdx.x < sweep.sources;
    sweeper.run(there ? sweep.starts[first + threadIdx.x] : -1);
    sweeper.gather(there ? sweep.rows_of[first + threadIdx.x] : -1);
  }
}
