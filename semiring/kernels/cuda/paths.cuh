// Paths from a closure and a construction matrix: predecessor trees, and single paths.
#pragma once

#include "arithmetic.cuh"

// Trees of best paths: row i holds the vertex before j on a path from i to j. A thread block has one row of pointers at a time, in shared
// memory if it fits. Transposed matrices give the vertex after i: strides are then exchanged, and x takes its operands in the other order.

constexpr unsigned FULL_WARP = 0xffffffff;
constexpr int NO_PREDECESSOR = -9999;  // SciPy's value for no predecessor

using VertexMatrix = StridedBatch<int>;

template <class S, bool BACKWARD> struct Closure {
  using E = typename S::Element;
  DeviceMatrix<S> values;
  VertexMatrix via;

  // Also true for an integer zero greater than in products.
  static __device__ __forceinline__ bool is_zero(E x) { return S::same(S::add(x, S::zero()), S::zero()); }
  __device__ __forceinline__ E operator()(int i, int j) const { return S::get(values.pointers, values.at(i, j)); }
  __device__ __forceinline__ bool connects(int i, int j) const { return !is_zero((*this)(i, j)); }

  // Returns true if the best path from the root to u, and the edge (u, v), make a best path to v.
  __device__ __forceinline__ bool ties(int root, int u, int v) const {
    if (u == v || via(u, v) >= 0) return false;
    const E edge = (*this)(u, v), whole = (*this)(root, v);
    if (is_zero(edge)) return false;
    if (u == root) return S::same(edge, whole);
    const E part = (*this)(root, u);
    return S::same(BACKWARD ? S::mul(edge, part) : S::mul(part, edge), whole);
  }
};

// A thread block's working memory: sets of vertices, and each vertex's pointer.
template <class Index> struct Room {
  int* sizes;  // of `frontier` and `wanted`
  unsigned *lost, *wanted, *frontier, *fresh;
  Index *at, *next;
  int n, words;

  __device__ __forceinline__ Room(char* memory, int n) : n(n), words((n + 31) / 32) {
    sizes = reinterpret_cast<int*>(memory);
    lost = reinterpret_cast<unsigned*>(sizes + 2);
    wanted = lost + words;
    frontier = wanted + words;
    fresh = frontier + words;
    at = reinterpret_cast<Index*>(fresh + words);
    next = at + n;
  }

  static __device__ __forceinline__ bool has(const unsigned* set, int x) { return set[x / 32] >> x % 32 & 1; }
  // Updates a word by a warp; each lane decides about its vertex.
  static __device__ __forceinline__ void put(unsigned* set, int x, bool member) {
    const unsigned word = __ballot_sync(FULL_WARP, member);
    if (threadIdx.x % 32 == 0) set[x / 32] = word;
  }

  // Calls body(x, x < n), by whole warps.
  template <class Body> __device__ __forceinline__ void each_vertex(Body body) const {
#pragma unroll 4
    for (int x = threadIdx.x; x < words * 32; x += blockDim.x) body(x, x < n);
  }
  template <class Body> __device__ __forceinline__ void each_word(Body body) const {
    for (int w = threadIdx.x; w < words; w += blockDim.x) body(w);
    __syncthreads();
  }

  // Calls body(first vertex, members) for non-empty words of the frontier, from the last one until body returns true. By a warp.
  template <class Body> __device__ __forceinline__ void each_frontier_word(Body body) const {
    const int lane = threadIdx.x % 32;
    for (int first = (words - 1) / 32 * 32; first >= 0; first -= 32) {
      const unsigned own = first + lane < words ? frontier[first + lane] : 0;
      for (unsigned left = __ballot_sync(FULL_WARP, own != 0); left != 0;) {
        const int w = 31 - __clz(left);
        left ^= 1u << w;
        if (body((first + w) * 32, __shfl_sync(FULL_WARP, own, w))) return;
      }
    }
  }

  // at[x] <- the end of the pointers from x, by doubling. Pointers into a circle end in the circle, and reach each vertex of it.
  __device__ __forceinline__ void follow() {
    __syncthreads();
    for (long long steps = 1;; steps *= 2) {
      bool changed = false;
#pragma unroll 4
      for (int x = threadIdx.x; x < n; x += blockDim.x) {
        const Index once = at[x], twice = at[once];
        changed |= once != twice;
        next[x] = twice;
      }
      Index* const last = at;
      at = next;
      next = last;
      if (!__syncthreads_or(changed) || steps >= n) return;
    }
  }
};

// tree(i, j) <- the last vertex before j on the path from i, found by following via(i, j) down column j to the end. Where rounding has bent
// the path into a circle, the result is j.
template <class Index> __device__ __forceinline__ void last_vertices(VertexMatrix via, VertexMatrix trees, int n, long long columns, char* memory) {
  Room<Index> room(memory, n);
  for (long long c = blockIdx.x; c < columns; c += gridDim.x) {
    const int j = c % n;
    const VertexMatrix through = via.of_batch(c / n), tree = trees.of_batch(c / n);
    room.each_vertex([&](int x, bool is_vertex) {
      const int k = is_vertex ? through(x, j) : 0;
      room.put(room.frontier, x, k < 0);
      if (is_vertex) room.at[x] = k < 0 ? x : k;
    });
    room.follow();
    room.each_vertex([&](int x, bool is_vertex) {
      if (is_vertex) tree(x, j) = room.has(room.frontier, room.at[x]) ? room.at[x] : j;
    });
    __syncthreads();
  }
}

// room.lost <- the vertices that do not lead to the root in the tree.
template <class Index> __device__ __forceinline__ bool find_lost(Room<Index>& room, const VertexMatrix& tree, int root) {
  room.each_vertex([&](int x, bool is_vertex) {
    if (is_vertex) room.at[x] = tree(root, x) < 0 ? x : tree(root, x);
  });
  room.follow();
  bool any = false;
  room.each_vertex([&](int x, bool is_vertex) {
    const bool lost = is_vertex && tree(root, x) >= 0 && room.at[x] != root;
    any |= lost;
    room.put(room.lost, x, lost);
  });
  return __syncthreads_or(any);
}

// Removes vertices without a path from the root; bad[...] <- the rows that are not trees.
template <class S, bool BACKWARD, class Index>
__device__ __forceinline__ void check_trees(Closure<S, BACKWARD> closure, VertexMatrix trees, int n, long long rows, long long* bad,
                                            char* memory) {
  Room<Index> room(memory, n);
  for (long long r = blockIdx.x; r < rows; r += gridDim.x) {
    const int root = r % n;
    Closure<S, BACKWARD> one = closure;
    S::advance(one.values.pointers, r / n * closure.values.batch);
    const VertexMatrix tree = trees.of_batch(r / n);
    for (int x = threadIdx.x; x < n; x += blockDim.x)
      if (x == root || !one.connects(root, x)) tree(root, x) = NO_PREDECESSOR;
    __syncthreads();
    if (find_lost(room, tree, root) && threadIdx.x == 0) bad[1 + atomicAdd(reinterpret_cast<unsigned long long*>(bad), 1)] = r;
  }
}

// The parent of a wanted vertex becomes the greatest vertex of room.frontier with an edge that ties. One warp handles the vertices of word
// w and returns the attached ones. Lanes go over the larger set: the vertices of w, or of one word of the frontier at a time.
template <class S, bool BACKWARD, class Index>
__device__ __forceinline__ unsigned attach_word(const Closure<S, BACKWARD>& closure, const Room<Index>& room, const VertexMatrix& tree, int root,
                                                int w, bool lanes_are_wanted) {
  const int lane = threadIdx.x % 32;
  const unsigned wanted = room.wanted[w];
  if (lanes_are_wanted) {
    const int v = w * 32 + lane;
    bool open = wanted >> lane & 1;
    const unsigned before = __ballot_sync(FULL_WARP, open);
    room.each_frontier_word([&](int begin, unsigned members) {
      while (members != 0) {
        const int last = 31 - __clz(members);
        members ^= 1u << last;
        if (open && closure.ties(root, begin + last, v)) {
          tree(root, v) = begin + last;
          open = false;
        }
      }
      return !__any_sync(FULL_WARP, open);
    });
    return before & ~__ballot_sync(FULL_WARP, open);
  }
  unsigned attached = 0;
  for (unsigned left = wanted; left != 0; left &= left - 1) {
    const int v = w * 32 + __ffs(left) - 1;
    room.each_frontier_word([&](int begin, unsigned members) {
      const unsigned ties = __ballot_sync(FULL_WARP, (members >> lane & 1) && closure.ties(root, begin + lane, v));
      if (ties == 0) return false;
      attached |= left & -left;
      if (lane == 0) tree(root, v) = begin + 31 - __clz(ties);
      return true;
    });
  }
  return attached;
}

// Attaches lost vertices again, by edges that tie, breadth-first from the tree; the first `circles` attempts only attach circles.
// bad[...] are the rows; remaining[...] <- the rows that ties alone do not repair.
template <class S, bool BACKWARD, class Index>
__device__ __forceinline__ void attach_by_ties(Closure<S, BACKWARD> closure, VertexMatrix trees, int n, const long long* bad,
                                               long long* remaining, int circles, char* memory) {
  Room<Index> room(memory, n);
  for (long long b = blockIdx.x; b < bad[0]; b += gridDim.x) {
    const long long r = bad[1 + b];
    const int root = r % n;
    Closure<S, BACKWARD> one = closure;
    S::advance(one.values.pointers, r / n * closure.values.batch);
    one.via = closure.via.of_batch(r / n);
    const VertexMatrix tree = trees.of_batch(r / n);
    for (int attempt = 0; find_lost(room, tree, root); attempt++) {
      room.each_vertex([&](int x, bool is_vertex) {
        room.put(room.frontier, x, is_vertex && !room.has(room.lost, x) && (x == root || tree(root, x) >= 0));
      });
      room.each_word([&](int w) { room.wanted[w] = attempt < circles ? 0 : room.lost[w]; });
      if (attempt < circles) {
        for (int x = threadIdx.x; x < n; x += blockDim.x)
          if (room.has(room.lost, x)) atomicOr(room.wanted + room.at[x] / 32, 1u << room.at[x] % 32);
        __syncthreads();
        room.each_word([&](int w) { room.wanted[w] &= room.lost[w]; });
      }
      bool progress = false;
      for (;; progress = true) {
        if (threadIdx.x < 2) room.sizes[threadIdx.x] = 0;
        __syncthreads();
        room.each_word([&](int w) {
          atomicAdd(room.sizes, __popc(room.frontier[w]));
          atomicAdd(room.sizes + 1, __popc(room.wanted[w]));
        });
        bool found = false;
        for (int w = threadIdx.x / 32; w < room.words; w += blockDim.x / 32) {
          const unsigned attached = attach_word(one, room, tree, root, w, room.sizes[0] < room.sizes[1]);
          if (threadIdx.x % 32 == 0) room.fresh[w] = attached;
          found |= attached != 0;
        }
        if (!__syncthreads_or(found)) break;
        room.each_word([&](int w) {
          room.frontier[w] = room.fresh[w];
          room.wanted[w] &= ~room.fresh[w];
        });
      }
      if (!progress && attempt >= circles) {
        if (threadIdx.x == 0) remaining[1 + atomicAdd(reinterpret_cast<unsigned long long*>(remaining), 1)] = r;
        break;
      }
    }
    __syncthreads();
  }
}

// Single paths: the path from s to t is the edge if via is -1, else the path from s to via and the path from via to t.
// walks[p] <- the vertices from sources[p] to targets[p]; lengths[p] <- their number, or 0 if there are more than `room`.
// Pending vertices are stacked at the end of the room, because each will take a place in the walk.
__device__ __forceinline__ void expand(const int* via, long long row, long long column, const int* sources, const int* targets,
                                       long long pairs, int room, int* walks, int* lengths) {
  const long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (p >= pairs) return;
  int* const walk = walks + p * room;
  int length = 0, top = room, v = sources[p];
  walk[length++] = v;
  walk[--top] = targets[p];
  while (top < room) {
    const int goal = walk[top], middle = via[v * row + goal * column];
    if (middle < 0) {
      v = walk[length++] = goal;
      top++;
    } else if (length < top) {
      walk[--top] = middle;
    } else {
      length = 0;
      break;
    }
  }
  lengths[p] = length;
}
