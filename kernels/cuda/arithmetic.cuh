// Operations of recorded expressions that C++ lacks or defines otherwise: as Python and NumPy have them.
#pragma once

// Types by the names that NumPy gives them.
using int16 = short;
using int32 = int;
using int64 = long long;
using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned int;
using uint64 = unsigned long long;
using float32 = float;
using float64 = double;

template <class T> __device__ __forceinline__ T minimum(T x, T y) { return y < x ? y : x; }
template <class T> __device__ __forceinline__ T maximum(T x, T y) { return y > x ? y : x; }
// One instruction; a NaN never wins against a number.
template <> __device__ __forceinline__ float minimum(float x, float y) { return fminf(x, y); }
template <> __device__ __forceinline__ float maximum(float x, float y) { return fmaxf(x, y); }

template <class T> __device__ __forceinline__ T magnitude(T x) { return x < T(0) ? T(-x) : x; }
template <> __device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
template <> __device__ __forceinline__ double magnitude(double x) { return fabs(x); }

// Rounded towards minus infinity; 0 where the divisor is 0.
template <class T> __device__ __forceinline__ T floor_quotient(T x, T y) {
  if (y == T(0)) return T(0);
  if (T(-1) < T(0) && y == T(-1)) return T(T(0) - x);
  const T quotient = T(x / y), rest = T(x % y);
  return rest != T(0) && (rest < T(0)) != (y < T(0)) ? T(quotient - T(1)) : quotient;
}

template <class T> __device__ __forceinline__ T floor_remainder(T x, T y) {
  if (y == T(0) || (T(-1) < T(0) && y == T(-1))) return T(0);
  const T rest = T(x % y);
  return rest != T(0) && (rest < T(0)) != (y < T(0)) ? T(rest + y) : rest;
}

// Shifts by the width or more leave nothing, or only the sign.
template <class T> __device__ __forceinline__ T shift_left(T x, T y) {
  const bool beyond = y < T(0) || y >= T(8 * sizeof(T));
  return beyond ? T(0) : T(static_cast<unsigned long long>(x) << y);
}

template <class T> __device__ __forceinline__ T shift_right(T x, T y) {
  const bool beyond = y < T(0) || y >= T(8 * sizeof(T));
  return beyond ? (x < T(0) ? T(-1) : T(0)) : T(x >> y);
}

// A sum in which an infinite integer stays what it is.
template <class T> __device__ __forceinline__ T absorbing_sum(T x, T y, T infinite) {
  return x == infinite || y == infinite ? infinite : T(x + y);
}
