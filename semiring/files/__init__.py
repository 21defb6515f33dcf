"""Graphs, matrices and saved results in files. Nothing is pickled, and no file is trusted.

reading.py      graphs from files: `read_edges`, and the input of the command line
edge_text.py    edge lists as text: every line is an edge, a header, a comment, or an error with its number
fields.py       the fields of a line: numbers, and the columns of a header
matrix_text.py  matrices as text: square tables of numbers, with or without names
networks.py     the formats that NetworkX reads
tables.py       matrices as output of the command line
formats.py      named matrices and a text in .npz, .zarr or .zarr.zip, written by rows and replaced in one step
archives.py     members of archives with a bound on their unpacked size, for formats.py

`semiring.cli` calls reading.py and tables.py; `semiring.results.saving` defines the content of the files of formats.py.
"""
