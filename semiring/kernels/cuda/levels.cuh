// Hop counts between all vertices of a sparse graph, by levels. V_l(s) has a bit per vertex that s reaches in at most l hops: V_0 = I, and
// V_l(s) is the union of V_(l-1)(s) and of V_(l-1)(u) for all edges (s, u). The distance from s to t is the number of levels with t not in
// V_l(s).
//
// Number is the type of the distances, which the including source defines.
#pragma once

#include "arithmetic.cuh"

constexpr int WARPS = 8;  // per thread block

// Counts the edges of each row of a dense matrix, without loops; or, given `heads`, lists where they lead, from `starts` on. `others`
// becomes 1 if an entry off the diagonal is neither `nothing` nor `length`.
extern "C" __global__ void list_edges(const Number* matrix, long long row, long long column, long long vertices, Number nothing,
                                      Number length, int* counts, const long long* starts, int* heads, int* others) {
  const int n = int(vertices), s = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (s >= n) return;
  const Number* const mine = matrix + s * row;
  long long count = heads == nullptr ? 0 : starts[s];
  bool other = false;
  for (int first = 0; first < n; first += 32) {
    const int t = first + lane;
    const Number x = t < n ? mine[t * column] : nothing;
    const bool edge = t != s && x != nothing;
    other |= edge && x != length;
    const unsigned all = __ballot_sync(0xffffffff, edge);
    if (heads != nullptr && edge) heads[count + __popc(all & ((1u << lane) - 1))] = t;
    count += __popc(all);
  }
  if (lane == 0 && heads == nullptr) counts[s] = int(count);
  if (heads == nullptr && other) *others = 1;
}

// Computes one level: a thread has 128 bits of a row. `changed` becomes 1 if a row changes.
extern "C" __global__ void next_level(const uint4* before, uint4* after, long long vertices, long long vectors, const long long* starts,
                                      const int* heads, int* changed) {
  const int n = int(vertices), width = int(vectors), column = blockIdx.y * 32 + threadIdx.x % 32, s = blockIdx.x * WARPS + threadIdx.x / 32;
  if (s >= n || column >= width) return;
  const uint4 old = before[s * static_cast<long long>(width) + column];
  uint4 found = old;
  const long long last = starts[s + 1];
#pragma unroll 4
  for (long long e = starts[s]; e < last; e++) {
    const uint4 other = before[heads[e] * static_cast<long long>(width) + column];
    found.x |= other.x, found.y |= other.y, found.z |= other.z, found.w |= other.w;
  }
  after[s * static_cast<long long>(width) + column] = found;
  if (found.x != old.x || found.y != old.y || found.z != old.z || found.w != old.w) *changed = 1;
}

extern "C" __global__ void first_level(unsigned* bits, long long vertices, long long row_words) {
  const int n = int(vertices), words = int(row_words), s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s < n) bits[s * static_cast<long long>(words) + s / 32] = 1u << s % 32;
}

// matrix[s, t] <- length times the number of levels without t in the row of s; `nothing` if no level has t.
extern "C" __global__ void count_levels(const unsigned* const* levels, long long all, long long vertices, long long row_words,
                                        Number* matrix, long long row, long long column, Number nothing, Number length) {
  const int count = int(all), n = int(vertices), words = int(row_words), s = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (s >= n) return;
  for (int word = blockIdx.y; word * 32 < n; word += gridDim.y) {
    const int t = word * 32 + lane;
    const long long at = s * static_cast<long long>(words) + word;
    int hops = 0;
    for (int l = 0; l < count; l++) hops += ~levels[l][at] >> lane & 1;
    if (t < n) matrix[s * row + t * column] = hops == count ? nothing : Number(Number(hops) * length);
  }
}
