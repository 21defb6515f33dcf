"""Out-of-core and multi-GPU closures, by block rows.

Of matrices that do not fit the memory of one device, are on disk, or are distributed over several GPUs.

The order of the computation is in `semiring.algorithms.block_rows`. Here it is carried out:

    layout.py        block rows: their side, the buffers that they take, the time that is predicted
    closure.py       the closure with its checks of overflow and divergence; calls workers.py
    workers.py       a worker thread for each device does the steps
    dependencies.py  what they wait for: how far each block row is, and who has received it; which of them are other ranks'
    pipeline.py      a device's pipeline: prefetch, compute, write back
    buffers.py       buffers on a device, and copies to and from storage: of the host; of devices that keep what they own
    gpus.py          the same of GPUs, and pinned output buffers
    storage.py       storage backends: arrays in memory, files of NumPy's, Zarr
    folder.py        the folder of a checkpoint: which closure it belongs to, by whom it is worked on, its input and its result
    checkpoint.py    a journal and the matrix that is worked on, on disk
    snapshots.py     snapshots of a matrix that is in the memories of ranks
    journal.py       what is written ahead, so that an update that was cut short can be done again
    identity.py      what tells closures apart: digests; and the lock of the one process that works on a folder

A closure goes from the top down: `close_by_rows`, the executor in `semiring.execution.block_rows` → `closure_by_rows` → `run_workers` →
`DevicePipeline` → `DeviceMemory` → `RowStorage`.
"""
