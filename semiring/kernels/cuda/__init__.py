"""The CUDA engine: products, closures and paths on NVIDIA GPUs.

From a semiring to machine code: `representation` chooses how elements are held during products, and the instructions of a step. `tile`
cuts a product into tiles, and `source` writes the operations as a C++ struct. `kernels` puts the struct before a template, and `compiler`
compiles by NVRTC, caches, loads and launches. The templates are the ``.cuh`` files, which take the struct as ``S``; `arguments` declares
the structures that both languages share.

`engine` is `Engine` on the caller's numbers, and `boolean` on bits. `launches` plans and records what they launch. `blocks` has copies,
also between host and GPU. Each other module launches the templates of its name. `semiring.kernels.hardware` has the limits of a GPU.
"""
