"""Closures of matrices that are not in the memory of one device as a whole: block rows that come to devices and go again."""
