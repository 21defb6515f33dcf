"""Several processes by MPI: collective calls that fail together, and broadcasts of row panels.

    ranks.py     the processes of a communicator, which share values and errors
    panels.py    row panels from their owners to all ranks: shared memory within a host, broadcasts between hosts, NCCL between GPUs

Nothing here knows the computation. `semiring.streaming.closure` runs the block rows of one rank, `semiring.execution.ranks` a whole call.
mpi4py is imported only after the caller has passed a communicator.
"""
