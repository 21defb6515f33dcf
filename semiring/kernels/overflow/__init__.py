"""Overflow: can a computation leave its dtype? What is checked before it, what is proved after it, and what is refused.

Integers would wrap around, and a float would overflow to ∞ and pass for an element, "no path". Neither is ever returned: the value
statistics of the operands or of the result prove that nothing of the kind has happened, or the computation is refused.

The rules
---------
Let w be the largest magnitude of a finite entry and d that of the result, p the edges of a longest path (n − 1, or n for a cycle), h the
inner ∞ of tropical integers, half of the dtype's own, and H half of the dtype's largest number. Entries *pull ∞ back* if they have the
other sign: negative ones under a minimum, positive ones under a maximum.

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

Of an exponential or a quotient of floats that could grow much nothing is known, and what is computed from it is not refused.
What could leave its dtype is an `OverflowRiskError`, which names the reach, the limit and the remedy (`remedy`): the next wider integer
dtype; float64 after int64 and float32; smaller entries, or exact objects, after float64. What is no element is a `DomainError`; where
an elimination leaves the carrier (`leaves_carrier`), that is a `DivergenceError`. With ``check=False`` nothing is refused; but whether
tropical integers pull ∞ back is found out all the same, because kernels depend on it.

The files
---------
``semiring.kernels.limits``
    Below the engines, which need it too: what a dtype holds (which integers stand for ±∞, also inside kernels, what is left for finite
    numbers), errors and remedies, and `ValueStatistics`.
``intervals``
    Interval arithmetic over the recorded operations on integers.
``statistics``
    Value statistics in one pass over each array, by kernels of `semiring.kernels.cpu.statistics` or `semiring.kernels.cuda.statistics`.
    Products that take as long as to read their operands tell themselves whether these are in the safe range: `semiring.kernels.cpu.bounds`.
``floats``
    The magnitudes that a product of floats may reach.
``products``
    `ProductChecks` and `certify`: before a product. It calls all of the above.
``scans``
    `check_scan`: before a scan. It calls all of the above.
``closures``
    `Guard`: before and after a closure. It calls all of the above.
"""
