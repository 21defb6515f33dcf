"""Overflow checks: proofs before or after a computation that no number leaves its dtype, or a refusal.

Integers would wrap around, and a float would overflow to ∞ and pass for an element, "no path". Neither is ever returned: the value
statistics of operands or result prove that nothing overflowed, or the computation is refused.

The rules
---------
Let w be the largest magnitude of a finite entry, d the result's, and p the edges of a longest path (n − 1, or n for a cycle). Let h be the
inner ∞ of tropical integers, half of the dtype's ∞, and H half of the dtype's largest number. Entries *pull ∞ back* if their sign is
opposite: negative entries under a minimum, positive entries under a maximum.

============================================  ======================================  ==========================  ===================
computation                                   refused beforehand, unless              refused afterwards, unless  function or class
============================================  ======================================  ==========================  ===================
any product                                   entries are elements                                                ProductChecks
product of tropical integers                  w < h, and a sum of two < h                                         certify
… that pull ∞ back                            w ≤ (h − 1)/3; sums from 2h/3 on are ∞                              certify
product of other integers                     each operation's interval fits                                      IntervalArithmetic
product of floats, ⊕ compares                 each operation's magnitude fits                                     certify_floats
product of floats, ⊕ computes                 (its ∞ is what IEEE 754 says)                                       certify_floats
scan of T steps                               the same, of all T one after the other                             check_scan
closure by comparisons or bits; bool, object  (nothing goes beyond the entries)                                   Guard
closure of integers, the carrier keeps them   (each operation's interval fits it)                                 stays_inside, Guard
closure of tropical integers                  w < h                                   d + w < h                   _TropicalIntegers
… that pull ∞ back                            3pw < h                                 (beyond pw it is ∞ again)   _TropicalIntegers
closure of tropical floats                    w < H                                   3pw < H or d + w < H        _TropicalFloats
… that pull ∞ back                            3pw < H                                                             _TropicalFloats
closure of sums a component, ⊕ selects one    3pw < H                                                             _Sums
closure of other floats                                                               all entries are elements    _Finite
closure of integers, min or max, finite zero                                          entries ⊗ entries fit       _Between
… infinite zero                               three walks of p edges fit                                          walks_fit, _Between
closure of other integers                     (always refused)                                                    guard_for
============================================  ======================================  ==========================  ===================

An exponential or a quotient of floats that could grow much is unknown, and results computed from an unknown number are not refused.

- `OverflowRiskError`: a number could leave its dtype. The message names the reach, the limit and a remedy (`remedy`): the next wider
  integer dtype; float64 after int64 and float32; smaller entries, or exact objects, after float64.
- `DomainError`: an entry is no element.
- `DivergenceError`: an elimination left the carrier (`leaves_carrier`).

With ``check=False`` nothing is refused. Tropical integers are still tested for entries that pull ∞ back, because kernels depend on it.
"""
