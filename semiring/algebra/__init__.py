"""Semirings: Python callables recorded as expressions, their meaning in each dtype, and the check of their laws.

Each module imports only from modules below it:

    derivatives.py  the derivative of each operation, the Jacobian of expressions, and the form of the derivative of a product
    laws.py         `check` with its report, and `require`: an algorithm refuses a semiring without the laws it needs
    catalogue.py    the built-in semirings, and `as_semiring`, which finds one by name
    definition.py   `Semiring`: an algebraic structure with a conversion of weights, a witness mark, and display in Jupyter

    equations.py    `law`: one law as an equation, passed or refuted by a counterexample
    model.py        the sampled elements, and the operations on them

    structure.py    `AlgebraicStructure`: operations, identities and carrier, and their values in each dtype
    program.py      `Program`: ⊕, ⊗ and star as recorded, and their comparison with the callables
    carrier.py      the set of elements: intervals, finite sets, predicates
    agreement.py    comparison of a callable with its recording on the same scalars

    ops.py          exp, log, where, … on numbers, NumPy arrays, SymPy expressions and symbols
    relaxation.py   the geometric series of `LOG`, and the relaxations of min-plus and max-plus
    exponential.py  recognition of log(e^{sa} + e^{sb}) / s
    tracing.py      `record`: runs a callable on symbols, once for each outcome of its branches
    expression.py   `Expr`, a recorded expression: evaluation and display; engines generate kernels from it
    elements.py     ±∞ and identities as numbers of a dtype

A new semiring records its callables (`tracing.record`), composes a program (`program.compose`) and compares the program with the
callables (`program.disagreements`). `laws.check` asks `equations.law` for each law; results are cached by semiring and dtypes.

This package handles NumPy scalars and arrays; `semiring.arrays` adds other libraries, devices and memory.
"""
