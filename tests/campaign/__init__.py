"""A campaign: random cases by the thousand, each compared with plain NumPy, Fractions and SciPy.

    python -m tests.campaign 60                      # for so many seconds, with a new seed, which is printed
    python -m tests.campaign --seed 7 --case 1234    # one case again

A case follows from the seed and its number alone: not from the time, the cases before it, or how many processes take part. Cases come in
rounds, and those of a round share a pool of few semirings and dtypes, so that many run on each compiled kernel.

| chapter | what it holds |
|---|---|
| `formulas` | ⊕ and ⊗ as data: their Python text for the library, their evaluation and their ranges for the oracles |
| `arithmetic` | what the evaluation computes with: numbers that know how far rounding may have moved them, and whole ones |
| `subjects`, `lawful`, `written` | a semiring in some dtypes and how to draw its elements: of the catalogue, with parameters, at random |
| `layouts`, `kinds` | how an array lies in memory; a matrix as any kind of graph |
| `oracles`, `answers`, `ways` | products, closures and paths by their definitions |
| `cases` | a case as data: printed in full, run, judged; which refusals are justified |
| `contracted` | contractions of several arrays: expressions, orders, slices, winners |
| `distances` | `pairwise` by metrics with a name, and by formulas; the k best |
| `wrapping`, `residues` | products of integers that wrap or are checked, and modulo p |
| `products`, `sparse`, `scans`, `closures`, `factors`, `figures`, `walks` | entry points: what is drawn and asked |
| `drop_in`, `exact`, `commands`, `kills` | the same of other faces, exact numbers, and processes of their own |
| `written_graphs` | graphs in files of many formats |
| `strategies` | how a sparse graph is computed, where that is drawn too |
| `shrinking` | the smallest case that still fails |
| `runner` | rounds, processes, the watch for crashes and hangs, the summary |
"""
