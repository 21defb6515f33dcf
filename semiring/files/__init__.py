"""Bytes in files: graphs and matrices for the command line, and saved paths. Nothing here is pickled, or trusted for its own sake.

    edge_text.py  edge lists as text: every line is an edge, a header, a comment, or an error with its number
    tables.py     graphs from the files that the command line names, and matrices to them; it parses text by edge_text
    formats.py    named matrices and a text in .npz, .zarr or .zarr.zip, written by rows and replaced in one step
    archives.py   members of archives, never unpacked beyond what belongs there; formats.py reads by it

`semiring.cli` calls tables.py, and `semiring.results.saving` says what is in the files of formats.py.
"""
