"""Out-of-core and multi-GPU closures by block rows, for matrices on disk or larger than the memory of one device.

`semiring.algorithms.block_rows` defines the order of the computation. The files here execute it:

    layout.py        block rows: side, buffers, predicted time, block-cyclic distribution
    closure.py       the closure: checks of overflow and divergence, and a worker thread for each device, which does the steps
    dependencies.py  rounds of block rows and receivers of row panels, for which workers wait
    pipeline.py      the device pipeline: load, compute, write back; buffers of the host, and copies to and from storage
    gpus.py          buffers on GPUs, and pinned output buffers
    storage.py       storage backends: arrays in memory, NumPy files, Zarr
    folder.py        the interface of a write-ahead journal, and a checkpoint's folder: identity, state, lock, digests
    checkpoint.py    a journal for a matrix on disk: records of interrupted updates
    snapshots.py     a journal for a matrix in memory: snapshots of the whole matrix

Calls go from the top down: `close_by_rows` in `semiring.execution.block_rows` → `closure_by_rows` → `DevicePipeline` →
`DeviceMemory` → `RowStorage`.
"""
