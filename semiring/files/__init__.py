"""Graphs, matrices and saved results in files. Nothing is pickled, and no file is trusted.

reading.py      graphs from files: `read_edges`, and the input of the command line; JSON, and NetworkX's formats
edge_text.py    edge lists as text: every line is an edge, a header, a comment, or an error with its number
fields.py       the fields of a line: numbers, and the columns of a header
decimals.py     decimal commas in fields
dimacs.py       shortest-path problems of DIMACS (.gr)
matrix_text.py  matrices as text: square tables of numbers, with or without names; and the output of the command line
formats.py      named matrices and a text in .npz, .zarr or .zarr.zip, written by rows and replaced in one step

`semiring.cli` calls reading.py and matrix_text.py; `semiring.results.saving` defines the content of the files of formats.py.
"""
