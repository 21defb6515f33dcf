// Matrices in global memory, vectors of elements, asynchronous copies to shared memory, and exchange between lanes.
#pragma once

#include "arguments.cuh"

// A matrix over a semiring S in global memory: one array per component, all of one layout. The fields of this structure, and of other
// structures with a macro of fields, are declared in arguments.py.
template <class S> struct DeviceMatrix {
  DEVICEMATRIX_FIELDS

  __device__ __forceinline__ long long at(int i, int j) const { return i * row + j * column; }
};

// A batch of matrices of numbers, with strides in numbers; without the number of a matrix, the first one is meant.
template <class T> struct StridedBatch {
  STRIDEDBATCH_FIELDS

  __device__ __forceinline__ T& at(long long b, long long i, long long j) const { return data[b * batch + i * row + j * column]; }
  __device__ __forceinline__ T& operator()(int i, int j) const { return data[i * row + j * column]; }
  __device__ __forceinline__ StridedBatch of_batch(long long matrix) const { return {data + matrix * batch, row, column, batch}; }
};

// Elements of one access to shared memory: as many as possible, or N.
template <class E, int N = sizeof(E) < 16 ? 16 / sizeof(E) : 1> struct alignas(sizeof(E) < 16 ? N * sizeof(E) : alignof(E)) Vector {
  static constexpr int length = N;
  E element[N];
};

// Copies between a vector and neighbours in an array.
template <class E> __device__ __forceinline__ void unpack(E* to, const Vector<E>& from) {
#pragma unroll
  for (int q = 0; q < Vector<E>::length; q++) to[q] = from.element[q];
}
template <class E> __device__ __forceinline__ Vector<E> packed(const E* from) {
  Vector<E> to;
#pragma unroll
  for (int q = 0; q < Vector<E>::length; q++) to.element[q] = from[q];
  return to;
}

// Sets all elements of an array of any rank.
template <class E> __device__ __forceinline__ void fill(E& x, E value) { x = value; }
template <class T, int N, class E> __device__ __forceinline__ void fill(T (&x)[N], E value) {
#pragma unroll
  for (int i = 0; i < N; i++) fill(x[i], value);
}

// Keeps a value in a register, so that the compiler does not compute it again and again.
__device__ __forceinline__ int kept(int x) { return __shfl_sync(0xffffffff, x, threadIdx.x % 32); }

// Keeps an address in global memory in registers, so that adding an offset takes one instruction.
template <class T> __device__ __forceinline__ void keep(T*& p) {
  asm("" : "+l"(p));
  __builtin_assume(__isGlobal(p));
}

// Returns the address `rows` rows of `apart` numbers after p; a 32-bit number of a row must not be negative.
template <class T> __device__ __forceinline__ T* row_behind(T* p, int rows, unsigned apart) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(p) + static_cast<unsigned long long>(unsigned(rows)) * (apart * unsigned(sizeof(T))));
}
template <class T> __device__ __forceinline__ T* row_behind(T* p, long long rows, unsigned apart) { return p + rows * apart; }

// The numbers of this thread and this block, read at each call: values that depend on them need no registers in between.
__device__ __forceinline__ int thread_number() {
  int x;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
  return x;
}
__device__ __forceinline__ int block_number() {
  int x;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
  return x;
}

// Returns the element of the lane whose number differs in a bit.
template <class E> __device__ __forceinline__ E of_other_lane(const E& x, int bit) {
  constexpr int WORDS = sizeof(E) / 4;
  union Words {
    E element;
    unsigned word[WORDS];
    __device__ __forceinline__ Words() {}
  } mine, others;
  mine.element = x;
#pragma unroll
  for (int w = 0; w < WORDS; w++) others.word[w] = __shfl_xor_sync(0xffffffff, mine.word[w], bit);
  return others.element;
}

// Prefetches into the second-level cache.
__device__ __forceinline__ void prefetch(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// Copies from global to shared memory, without registers in between.

// An address in shared memory.
using Shared = unsigned;

__device__ __forceinline__ Shared shared_address(const void* p) { return static_cast<Shared>(__cvta_generic_to_shared(p)); }
template <class T> __device__ __forceinline__ T& shared_object(Shared p) { return *static_cast<T*>(__cvta_shared_to_generic(p)); }

// BYTES is 4, 8 or 16, and divides both addresses; 16 bytes bypass the first-level cache. Without `there`, nothing is read.
template <int BYTES> __device__ __forceinline__ void copy_async(Shared target, const void* source, bool there) {
#if __CUDA_ARCH__ >= 800
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(there ? 16 : 0));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(target), "l"(source), "n"(BYTES), "r"(there ? BYTES : 0));
#else
  struct alignas(BYTES) Word { char bytes[BYTES]; };
  if (there) shared_object<Word>(target) = *static_cast<const Word*>(source);
#endif
}

template <class T> __host__ __device__ constexpr bool is_async_size() { return sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16; }

// Copies one number, asynchronously if the hardware can.
template <class T, class U> __device__ __forceinline__ void fetch(Shared target, const U* source, bool there) {
  if constexpr (sizeof(T) == sizeof(U) && is_async_size<T>())
    copy_async<sizeof(T)>(target, source, there);
  else if (there)
    shared_object<T>(target) = *source;
}

// Consecutive numbers of an array in a thread block's shared memory, with any alignment: copies begin at a multiple of 16 bytes and end
// with the last number. MIXED swizzles addresses (bits 4 to 6 are combined with higher bits), so that numbers 16 or 32 apart lie in other
// banks.
template <class T, bool MIXED> struct Staged {
  char* place;

  static __device__ __forceinline__ unsigned mixed(unsigned byte) { return MIXED ? byte ^ (byte >> 3 & 0x70) : byte; }
  __device__ __forceinline__ T& operator[](int i) const {
    if constexpr (!MIXED) return reinterpret_cast<T*>(place)[i];
    const unsigned shift = static_cast<unsigned>(reinterpret_cast<unsigned long long>(place)) % 16;
    return *reinterpret_cast<T*>(place - shift + mixed(shift + unsigned(sizeof(T)) * i));
  }

  // Starts copying `count` numbers, and moves `shared` past the room for `room` numbers.
  __device__ __forceinline__ Staged(char*& shared, const T* source, int count, int room) {
    const unsigned shift = reinterpret_cast<unsigned long long>(source) % 16, end = shift + unsigned(sizeof(T)) * count, whole = end / 16 * 16;
    const char* const from = reinterpret_cast<const char*>(source) - shift;
    place = shared + shift;
#pragma unroll 4
    for (unsigned byte = 16 * threadIdx.x; byte < whole; byte += 16 * blockDim.x)
      copy_async<16>(shared_address(shared + mixed(byte)), from + byte, true);
    if (const unsigned byte = whole + unsigned(sizeof(T)) * threadIdx.x; byte < end)  // never reads past the last number
      fetch<T>(shared_address(shared + mixed(byte)), reinterpret_cast<const T*>(from + byte), true);
    shared += (unsigned(sizeof(T)) * room + 15 + 127) / 128 * 128;
  }
};

// Copies 16 bytes, or writes zeros without reading if the source does not exist.
__device__ __forceinline__ void copy_async_or_zero(void* shared, const void* global, bool exists) {
#if __CUDA_ARCH__ >= 800
  copy_async<16>(shared_address(shared), global, exists);
#else
  *static_cast<uint4*>(shared) = exists ? *static_cast<const uint4*>(global) : uint4{};
#endif
}

// Closes the group of copies started since the last group.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;");
#endif
}

// Waits for all groups but the last PENDING ones.
template <int PENDING> __device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING));
#endif
}

struct Bounds { BOUNDS_FIELDS };

// Compares operands with bounds while a kernel reads them; the words of the bounds are doubles if elements are floats.
template <class S> struct Within {
  using E = typename S::Element;
  using T = decltype(E::c0);
  T least, greatest, bottom, top;
  int* target;
  int beyond = 0;

  static __device__ __forceinline__ T number(long long word) { return T(0.5) == T(0) ? T(word) : T(__longlong_as_double(word)); }
  __device__ __forceinline__ explicit Within(const Bounds& bounds)
      : least(number(bounds.least)), greatest(number(bounds.greatest)), bottom(number(bounds.bottom)), top(number(bounds.top)),
        target(bounds.beyond) {}
  __device__ __forceinline__ void take(const E& x) {
    if (!((x.c0 >= least && x.c0 <= greatest) || x.c0 == bottom || x.c0 == top)) beyond = 1;
  }
  __device__ __forceinline__ void tell() const {
    if (beyond) *target = 1;
  }
};
