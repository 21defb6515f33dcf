"""Several processes on one or many machines, by MPI: what they tell each other, and how row panels come from one to all.

    ranks.py     the processes of a communicator: what each of them says is known to all, and so is what one of them raises
    panels.py    row panels from their owners to all ranks: memory that the ranks of a host share, broadcasts between hosts
    nccl.py      the same from GPU to GPU

Nothing here knows what is computed. `semiring.streaming.workers` runs the block rows of one rank, and `semiring.execution.ranks` a whole
call; mpi4py is imported where a communicator is there already.
"""
