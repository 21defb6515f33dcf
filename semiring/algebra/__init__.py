"""What a semiring is: plain Python callables become expressions, which mean something in a dtype, and whose laws are checked.

What is defined is below what uses it; imports run from top to bottom:

    laws.py         `check`, its report, and `require`: the refusal of a semiring without a law that an algorithm needs
    catalogue.py    the semirings that come with the library, and `as_semiring`, which finds them by name
    definition.py   `Semiring`: an algebraic structure, its witness, and what Jupyter shows of it

    equations.py    `law`: one law as an equation, passed or refuted by a counterexample
    model.py        the structure on arrays of sampled elements, in which equations are evaluated
    sampling.py     the elements on which they are

    structure.py    `AlgebraicStructure`: operations, identities and carrier, and what they are in each dtype
    program.py      `Program`: ⊕, ⊗ and star as recorded; whether the callables compute that too
    carrier.py      the set of elements: intervals, finite sets, predicates
    agreement.py    a callable and its recording on the same scalars, for operations and for predicates
    exponential.py  whether what was recorded is log(e^{sa} + e^{sb}) / s

    ops.py          exp, log, where, …: on numbers, NumPy's arrays, SymPy's expressions and symbols alike
    tracing.py      `record`: a callable runs on symbols, once for each outcome of its branches
    expression.py   `Expr`: what that gives, and how it is evaluated and shown; engines generate kernels from it
    elements.py     ±∞ and identities as numbers of a dtype

When a semiring is made, `tracing.record` records its callables, `program.compose` makes their program, and `program.disagreements`
tries it beside the callables. `laws.check` asks `equations.law` for each law, and that once for each semiring and dtypes.

NumPy's scalars and arrays are the only ones that are known here; other libraries, devices and memory are in `semiring.arrays`.
"""
