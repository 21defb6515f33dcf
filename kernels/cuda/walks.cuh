// Walks out of a construction matrix: the path from s to t is the edge itself where via is -1, and otherwise the path from s to via
// followed by the one from there to t.
#pragma once

// walks[p] <- the vertices from sources[p] to targets[p], lengths[p] <- how many; 0 if they are more than `room`.
// The vertices that are still to be reached are stacked at the end of the room: each will have a place of its own in the walk.
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
