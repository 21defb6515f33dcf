"""Bytes in files: graphs, matrices of the command line, and saved paths. Nothing here is pickled, or trusted for its own sake.

    reading.py      graphs from files: `read_edges`, and what the command line reads
    edge_text.py    edge lists as text: every line is an edge, a header, a comment, or an error with its number
    fields.py       what the fields of a line mean: numbers, and the columns of a header
    matrix_text.py  matrices as text: square tables of numbers, with names or without
    networks.py     the formats that NetworkX reads
    tables.py       matrices to the files that the command line names
    formats.py      named matrices and a text in .npz, .zarr or .zarr.zip, written by rows and replaced in one step
    archives.py     members of archives, never unpacked beyond what belongs there; formats.py reads by it

`semiring.cli` calls reading.py and tables.py, and `semiring.results.saving` says what is in the files of formats.py.
"""
