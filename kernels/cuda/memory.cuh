// Copies from device memory to shared memory that do not pass through registers.
#pragma once

// BYTES is 4, 8 or 16; 16 bytes bypass the first-level cache. Both addresses are multiples of BYTES.
template <int BYTES> __device__ __forceinline__ void copy_async(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
  const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(global));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(target), "l"(global), "n"(BYTES));
#else
  struct alignas(BYTES) Word { char bytes[BYTES]; };
  *static_cast<Word*>(shared) = *static_cast<const Word*>(global);
#endif
}

// 16 bytes, or zeros in the place of what does not exist; nothing is read then.
__device__ __forceinline__ void copy_async_or_zero(void* shared, const void* global, bool exists) {
#if __CUDA_ARCH__ >= 800
  const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(global), "r"(exists ? 16 : 0));
#else
  *static_cast<uint4*>(shared) = exists ? *static_cast<const uint4*>(global) : uint4{};
#endif
}

// Closes the group of copies begun since the last one.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;");
#endif
}

// Waits until all but the last PENDING groups have arrived.
template <int PENDING> __device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING));
#endif
}

template <class T> __host__ __device__ constexpr bool is_async_size() { return sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16; }

// One number, asynchronously where the hardware can.
template <class T> __device__ __forceinline__ void fetch(T* shared, const T* global) {
  if constexpr (is_async_size<T>())
    copy_async<sizeof(T)>(shared, global);
  else
    *shared = *global;
}
