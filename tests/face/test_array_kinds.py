"""Every kind of array goes in, the same kind comes out, on the same device, and what the caller passed stays as it was."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import semiring as sr

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take three quarters of the GPU's memory

OLD = np.lib.NumpyVersion(np.__version__) < "2.2.0"
pytestmark = pytest.mark.skipif(OLD, reason="what comes by DLPack is read-only for this NumPy, which does not export such arrays either")

INF = np.inf
N = 9
Array = np.ndarray[Any, Any]
Function = Callable[[Any], tuple[Any, ...]]


class OnlyDLPack:
    """An array of a library that nobody has heard of."""

    def __init__(self, array: Any, device: tuple[int, int] | None = None) -> None:
        self.array, self.device_ = array, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.device_ or self.array.__dlpack_device__()


class OnlyInterface:
    def __init__(self, array: Any) -> None:
        self.array = array  # keeps the memory
        for name in ("__array_interface__", "__cuda_array_interface__"):
            if hasattr(array, name):
                setattr(self, name, getattr(array, name))


class OnlyMethod:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array if dtype is None else self.array.astype(dtype)


def library(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what another library deprecates while it is imported
        return pytest.importorskip(name)


def another_device(array: Array) -> Any:
    xp = library("array_api_strict")
    return xp.asarray(array.copy(), device=xp.Device("device1"))


def managed(array: Array) -> Any:
    cupy = library("cupy")
    with cupy.cuda.using_allocator(cupy.cuda.malloc_managed):
        return cupy.asarray(array)


def in_jax(array: Array, platform: str, index: int = 0) -> Any:
    jax = library("jax")
    try:
        return jax.device_put(array, jax.devices(platform)[index]).block_until_ready()
    except (IndexError, RuntimeError) as error:
        pytest.skip(f"JAX has no such device: {error}")


def in_numba(array: Array) -> Any:
    return library("numba.cuda").to_device(np.ascontiguousarray(array))


@dataclass(frozen=True)
class Kind:
    """A row of the table.

    `make` gives an array of the library over memory of its own, `numbers` what is in one, and `lend` what is passed of it. What comes out
    is of the type and on the device that `make` has chosen, because a kind without a way back comes out as that whose memory it lends.
    """

    name: str
    make: Callable[[Array], Any]
    numbers: Callable[[Any], Array]
    lend: Callable[[Any], Any] = lambda array: array
    overwritable: bool = True
    takes_results: bool = True
    dtype: str = "float32"
    gpu: bool = False


def get(array: Any) -> Any:
    return array.get()


def buffer(array: Any) -> Any:
    return memoryview(array)


KINDS = [
    Kind("numpy", np.copy, np.asarray),
    Kind("nested-list", np.copy, np.asarray, lambda a: a.tolist(), overwritable=False, takes_results=False, dtype="float64"),
    Kind("memoryview", np.copy, np.asarray, buffer, takes_results=False),
    Kind("dlpack", np.copy, np.asarray, OnlyDLPack),
    Kind("array-interface", np.copy, np.asarray, OnlyInterface),
    Kind("array-method", np.copy, np.asarray, OnlyMethod, takes_results=False),
    Kind("array-api-strict", lambda a: library("array_api_strict").asarray(a.copy()), np.from_dlpack),
    Kind("array-api-strict-device1", another_device, np.from_dlpack),
    Kind("torch", lambda a: library("torch").from_numpy(a.copy()), lambda t: t.numpy()),
    Kind("jax", lambda a: in_jax(a, "cpu"), np.asarray, overwritable=False, takes_results=False),
    Kind("jax-cpu1", lambda a: in_jax(a, "cpu", 1), np.asarray, overwritable=False, takes_results=False),
    Kind("cupy", lambda a: library("cupy").asarray(a), get, gpu=True),
    Kind("torch-cuda", lambda a: library("torch").from_numpy(a.copy()).cuda(), lambda t: t.cpu().numpy(), gpu=True),
    Kind("jax-cuda", lambda a: in_jax(a, "gpu"), np.asarray, overwritable=False, takes_results=False, gpu=True),
    Kind("numba-cuda", in_numba, lambda a: a.copy_to_host(), gpu=True),
    Kind("dlpack-cuda", lambda a: library("cupy").asarray(a), get, OnlyDLPack, gpu=True),
    Kind("dlpack-managed", managed, get, OnlyDLPack, gpu=True),
    Kind("cuda-array-interface", lambda a: library("cupy").asarray(a), get, OnlyInterface, gpu=True),
]


def rows(*, takes_results: bool | None = None) -> list[Any]:
    """The kinds as parameters of a test."""
    chosen = [k for k in KINDS if takes_results in (None, k.takes_results)]
    return [pytest.param(k, id=k.name, marks=[pytest.mark.gpu] if k.gpu else []) for k in chosen]


def graph(seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return np.where(rng.random((N, N)) < 0.3, rng.integers(1, 20, (N, N)), INF).astype(np.float32)


def padded(a: Array) -> Array:
    around = np.full((N + 3, N + 3), -7, np.float32)
    around[1:-2, 2:-1] = a
    return around


def transposed(x: Any) -> Any:
    """The same memory with its axes exchanged: Numba's own ``.T`` is a copy."""
    if type(x).__module__.startswith("numba"):
        return library("numba.cuda").as_cuda_array(library("cupy").asarray(x).T)
    return x.T


LAYOUTS: dict[str, tuple[Callable[[Array], Array], Callable[[Any], Any]]] = {
    "contiguous": (lambda a: a, lambda x: x),
    "Fortran": (lambda a: a.T, transposed),
    "strided": (lambda a: np.kron(a, np.ones((2, 3), np.float32)), lambda x: x[::2, ::3]),
    "part": (padded, lambda x: x[1:-2, 2:-1]),
    "batch": (lambda a: np.stack([a, a.T, a + 1]), lambda x: x),
    "part of a batch": (lambda a: np.stack([a, a.T, a + 1, a]), lambda x: x[::2, :, :]),
    "nothing": (lambda a: a[:0, :0], lambda x: x),
}
"""What memory holds, and how an array in it is seen."""


def with_paths(x: Any) -> tuple[Any, ...]:
    paths = sr.apsp(x, paths=True, nonedge=INF)
    return paths.distances, paths.via, paths.predecessors(), paths.next_hops()


FUNCTIONS: dict[str, Function] = {
    "apsp": lambda x: (sr.apsp(x, nonedge=INF),),
    "apsp in another dtype": lambda x: (sr.apsp(x, nonedge=INF, dtype=np.int32),),
    "apsp with paths": with_paths,
    "closure": lambda x: (sr.closure(x, sr.MIN_MAX, reflexive=False, nonedge=INF),),
    "transitive_closure": lambda x: (sr.transitive_closure(x, nonedge=INF),),
    "power": lambda x: tuple(sr.power(x, k, sr.MIN_PLUS, nonedge=INF) for k in (0, 1, 3)),
    "matmul": lambda x: (sr.matmul(x, x, sr.MIN_PLUS),),
    "matmul with c": lambda x: (sr.matmul(x, x, sr.MIN_PLUS, c=x),),
    "matmul with witness": lambda x: tuple(sr.matmul(x, x, sr.TROPICAL_ARGMIN)),
}


def device_of(array: Any) -> Any:
    return getattr(array, "device", None)


def require_kind(found: Any, like: Any) -> None:
    assert type(found) is type(like)
    assert device_of(found) == device_of(like)


def require_numbers(kind: Kind, found: Any, expected: Any) -> None:
    numbers = kind.numbers(found)
    assert numbers.dtype == expected.dtype
    np.testing.assert_array_equal(numbers, expected)


@pytest.mark.sampled(43)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", rows())
def test_the_same_kind_comes_out(kind: Kind, layout: str) -> None:
    if kind.name == "nested-list" and layout == "nothing":
        pytest.skip("[] tells no shape")
    fill, view = LAYOUTS[layout]
    memory = fill(graph())
    base = kind.make(memory)
    array = view(base)
    expected_input = view(memory).astype(kind.dtype)
    for name, function in FUNCTIONS.items():
        if name == "apsp with paths" and layout in ("batch", "part of a batch"):
            assert type(sr.apsp(kind.lend(array), paths=True, nonedge=INF)[0].via) is type(array)
        for found, expected in zip(function(kind.lend(array)), function(expected_input.copy()), strict=True):
            require_kind(found, array)
            require_numbers(kind, found, expected)
        np.testing.assert_array_equal(kind.numbers(base), memory, err_msg=f"{name} changed what the caller passed")


@pytest.mark.parametrize("layout", ["contiguous", "Fortran", "strided", "part"])
@pytest.mark.parametrize("kind", rows())
def test_overwriting(kind: Kind, layout: str) -> None:
    fill, view = LAYOUTS[layout]
    memory, expected = fill(graph()), sr.apsp(graph())
    base = kind.make(memory)
    found = sr.apsp(kind.lend(view(base)), overwrite=True)
    require_kind(found, view(base))
    require_numbers(kind, found, expected.astype(kind.dtype))
    after = np.array(kind.numbers(base))
    if not kind.overwritable:
        np.testing.assert_array_equal(after, memory)
    elif layout == "contiguous":
        np.testing.assert_array_equal(after, expected)
    view(after)[...] = view(memory)
    np.testing.assert_array_equal(after, memory, err_msg="more was overwritten than was passed")


@pytest.mark.parametrize("layout", ["contiguous", "Fortran", "strided", "part"])
@pytest.mark.parametrize("kind", rows(takes_results=True))
def test_results_go_where_the_caller_wants_them(kind: Kind, layout: str) -> None:
    fill, view = LAYOUTS[layout]
    a, b = graph(), graph(1)
    memory = fill(np.zeros_like(a))
    base = kind.make(memory)
    out = kind.lend(view(base))
    values, witness = sr.matmul(kind.lend(kind.make(a)), kind.lend(kind.make(b)), sr.MIN_PLUS, c=a, out=out, witness=True)
    expected = sr.matmul(a, b, sr.MIN_PLUS, c=a, witness=True)
    assert values is out
    require_kind(witness, view(base))
    np.testing.assert_array_equal(kind.numbers(witness), expected.witness)
    after = np.array(kind.numbers(base))
    np.testing.assert_array_equal(view(after), expected.values)
    view(after)[...] = view(memory)
    np.testing.assert_array_equal(after, memory, err_msg="more was written than the result")
    both = kind.make(a)
    sr.matmul(kind.lend(both), kind.lend(both), sr.MIN_PLUS, c=kind.lend(both), out=kind.lend(both))
    np.testing.assert_array_equal(kind.numbers(both), sr.matmul(a, a, sr.MIN_PLUS, c=a))


@pytest.mark.parametrize("kind", rows(takes_results=False))
def test_what_cannot_be_written_to_takes_no_result(kind: Kind) -> None:
    a = graph()
    array = kind.make(a)
    with pytest.raises((sr.DTypeError, sr.ShapeError), match=r"out must be"):
        sr.matmul(a, a, sr.MIN_PLUS, out=kind.lend(array))
    np.testing.assert_array_equal(kind.numbers(array), a)


@pytest.mark.parametrize("kind", rows())
def test_vectors_and_other_shapes(kind: Kind) -> None:
    a, b = graph(), graph(1)
    for left, right in ((a[0], b), (a, b[0]), (a[0], b[0]), (a[:2, :0], b[:0, :2]), (np.stack([a, b]), b)):
        if kind.name == "nested-list" and left.size == 0:
            continue  # [] tells no shape
        x = kind.make(left)
        found = sr.matmul(kind.lend(x), kind.lend(kind.make(right)), sr.MIN_PLUS)
        expected = np.asarray(sr.matmul(left, right, sr.MIN_PLUS))
        if expected.shape or not isinstance(x, np.ndarray):  # NumPy gives a scalar
            require_kind(found, x)
        np.testing.assert_array_equal(kind.numbers(found), expected)


@pytest.mark.parametrize("kind", rows())
@pytest.mark.parametrize("dtype", ["float16", "int8", "int16", "int32", "uint8", "bool"])
def test_dtypes(kind: Kind, dtype: str) -> None:
    if kind.name == "nested-list":
        pytest.skip("Python's numbers have no such dtype")
    if kind.name.startswith("array-api-strict") and dtype == "float16":
        pytest.skip("the standard has no such dtype")
    a = (np.random.default_rng(3).random((N, N)) < 0.4).astype(dtype)
    array = kind.make(a)
    semiring = sr.BOOLEAN if dtype in ("bool", "uint8") else sr.MIN_PLUS
    functions: tuple[Callable[[Any], Any], ...] = (lambda x: sr.closure(x, semiring, nonedge=0), lambda x: sr.matmul(x, x, semiring))
    for function in functions:
        expected = function(a)
        found = function(kind.lend(array))
        require_kind(found, array)
        require_numbers(kind, found, expected)
    np.testing.assert_array_equal(kind.numbers(array), a)


@pytest.mark.parametrize("kind", rows())
def test_components_of_an_element(kind: Kind) -> None:
    distance = graph()
    hops = np.where(np.isinf(distance), INF, 1).astype(np.float32)
    pair = kind.make(distance), kind.make(hops)
    lent = kind.lend(pair[0]), kind.lend(pair[1])
    both = distance.astype(kind.dtype), hops.astype(kind.dtype)
    expected = (*sr.closure(both, sr.DISTANCE_HOPS), *sr.matmul(both, both, sr.DISTANCE_HOPS))
    found = (*sr.closure(lent, sr.DISTANCE_HOPS), *sr.matmul(lent, lent, sr.DISTANCE_HOPS))
    for x, y in zip(found, expected, strict=True):
        require_kind(x, pair[0])
        require_numbers(kind, x, y)


@pytest.mark.parametrize("kind", rows())
def test_paths_are_pickled_with_their_kind(kind: Kind) -> None:
    if kind.name == "numba-cuda":
        pytest.skip("Numba's arrays come again where Numba has been imported")
    paths = pickle.loads(pickle.dumps(sr.apsp(kind.lend(kind.make(graph())), paths=True)))
    assert type(paths.via) is type(kind.make(graph()))
    assert paths.path(0, 1) == sr.apsp(graph(), paths=True).path(0, 1)


def test_read_only_arrays() -> None:
    a = graph()
    a.flags.writeable = False
    kinds: tuple[Callable[[Any], Any], ...] = (np.asarray, buffer, OnlyInterface, OnlyMethod)
    for lend in kinds:
        found = sr.apsp(lend(a), overwrite=True)
        assert found.flags.writeable
        np.testing.assert_array_equal(found, sr.apsp(graph()))
        np.testing.assert_array_equal(sr.matmul(lend(a), lend(a), sr.MIN_PLUS), sr.matmul(graph(), graph(), sr.MIN_PLUS))
    np.testing.assert_array_equal(a, graph())


@pytest.mark.gpu
def test_read_only_memory_of_a_gpu() -> None:
    a = library("cupy").asarray(graph())
    lent = OnlyInterface(a)
    address, _ = a.__cuda_array_interface__["data"]
    setattr(lent, "__cuda_array_interface__", {**a.__cuda_array_interface__, "data": (address, True)})  # noqa: B010 (mypy knows no such name)
    np.testing.assert_array_equal(sr.apsp(lent, overwrite=True).get(), sr.apsp(graph()))
    with pytest.raises(sr.DTypeError, match="read-only"):
        sr.matmul(a, a, sr.MIN_PLUS, out=lent)
    np.testing.assert_array_equal(a.get(), graph())


def answers(array: Array) -> dict[str, tuple[Any, ...]]:
    """What every entry point makes of non-negative numbers in which 0 is no edge."""
    found: dict[str, tuple[Any, ...]] = {}
    for semiring in (sr.MIN_PLUS, sr.MAX_MIN):
        found[f"matmul, {semiring.name}"] = tuple(sr.matmul(array, array, semiring, c=array, witness=True))
        found[f"closure, {semiring.name}"] = (sr.closure(array, semiring, nonedge=0),)
        found[f"power, {semiring.name}"] = (sr.power(array, 3, semiring, nonedge=0),)
    truths = (array != 0).astype(array.dtype if array.dtype.kind in "iu" else bool)
    found["truth values"] = (sr.matmul(truths, truths, sr.BOOLEAN), sr.transitive_closure(array, nonedge=0))
    paths = sr.apsp(array, nonedge=0, paths=True)
    found["paths"] = paths.distances, paths.via, paths.predecessors()
    found["another dtype"] = (sr.apsp(array, nonedge=0, dtype=np.float64), sr.apsp(array, nonedge=0, dtype=np.dtype(">i4")))
    if array.ndim == 2 and array.size:
        found["sources"] = sr.apsp(array, nonedge=0, sources=[0, 3]), sr.matmul(array[0], array, sr.MIN_PLUS)
        found["csgraph"] = (sr.csgraph.shortest_path(array, "J", indices=[0, 3]),)
    return found


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("dtype", "layout"),
    [  # each dtype and each layout several times
        (dtype, layout)
        for i, dtype in enumerate(["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"])
        for j, layout in enumerate(LAYOUTS)
        if (i + j) % 3 == 0
    ],
)
def test_swapped_bytes_give_what_native_ones_do(dtype: str, layout: str) -> None:
    pytest.importorskip("scipy")
    fill, view = LAYOUTS[layout]
    whole = np.abs(fill(np.where(np.isinf(graph()), 0, graph()))).astype(dtype)
    native, swapped = view(whole), view(whole.astype(whole.dtype.newbyteorder()))
    before = swapped.copy()
    for (name, found), expected in zip(answers(swapped).items(), answers(native).values(), strict=True):
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype, name
            assert one.dtype.isnative
            np.testing.assert_array_equal(one, other, err_msg=name)
    np.testing.assert_array_equal(swapped, before)


class TestDataFrames:
    def test_closures_keep_the_labels(self) -> None:
        pd = library("pandas")
        names = [f"v{i}" for i in range(N)]
        frame = pd.DataFrame(graph(), index=names, columns=names)
        kept = frame.copy()
        for name, function in FUNCTIONS.items():
            if "matmul" in name:
                with pytest.raises(sr.GraphError, match=r"labels.*to_numpy"):
                    function(frame)
                continue
            found, expected = function(frame), function(graph())
            assert type(found[0]) is pd.DataFrame
            assert list(found[0].index) == list(found[0].columns) == names
            assert all(type(f) is np.ndarray for f in found[1:]) or name == "power"
            for x, y in zip(found, expected, strict=True):
                np.testing.assert_array_equal(np.asarray(x), y)
        pd.testing.assert_frame_equal(frame, kept)


def test_masked_entries() -> None:
    masked = np.ma.masked_equal(graph(), INF)
    np.testing.assert_array_equal(sr.apsp(masked), sr.apsp(graph()))
    with pytest.raises(sr.GraphError, match="masked entries"):
        sr.matmul(masked, masked, sr.MIN_PLUS)
    whole = np.ma.masked_equal(graph(), -1)
    np.testing.assert_array_equal(sr.matmul(whole, whole, sr.MIN_PLUS), sr.matmul(graph(), graph(), sr.MIN_PLUS))


MIXED = [
    ("numpy", "torch", "torch"),
    ("torch", "numpy", "torch"),
    ("nested-list", "array-api-strict", "array-api-strict"),
    ("dlpack", "array-api-strict", "array-api-strict"),
    ("torch", "jax", "torch"),
    ("jax", "torch", "jax"),
    ("array-api-strict", "numpy", "array-api-strict"),
    ("numpy", "cupy", "cupy"),
    ("torch-cuda", "numpy", "torch-cuda"),
    ("cupy", "torch-cuda", "cupy"),
    ("jax-cuda", "cupy", "jax-cuda"),
    ("dlpack-cuda", "torch-cuda", "cupy"),
]
"""Of two operands the first that is not NumPy's says what comes out."""

NAMED = {k.name: k for k in KINDS}


def pairs(table: list[Any]) -> list[Any]:
    return [pytest.param(*row, marks=[pytest.mark.gpu] if any(NAMED[k].gpu for k in row) else []) for row in table]


@pytest.mark.parametrize(("left", "right", "result"), pairs(MIXED))
def test_operands_of_two_kinds(left: str, right: str, result: str) -> None:
    a, b = graph(), graph(1)
    x, y = (NAMED[name].lend(NAMED[name].make(m)) for name, m in ((left, a), (right, b)))
    found = sr.matmul(x, y, sr.MIN_PLUS)
    require_kind(found, NAMED[result].make(a))
    np.testing.assert_array_equal(NAMED[result].numbers(found), sr.matmul(a, b, sr.MIN_PLUS))


APART = [("torch", "torch-cuda"), ("torch-cuda", "torch"), ("array-api-strict", "cupy"), ("cupy", "jax")]


@pytest.mark.parametrize(("left", "right"), pairs(APART))
def test_operands_on_two_devices(left: str, right: str) -> None:
    x, y = NAMED[left].make(graph()), NAMED[right].make(graph())
    with pytest.raises(sr.ShapeError, match=r"on the host and another operand on a GPU; .* so copy . yourself"):
        sr.matmul(x, y, sr.MIN_PLUS)
    for c, a in ((x, y), (y, x)):
        with pytest.raises(sr.ShapeError, match="on a GPU"):
            sr.matmul(a, a, sr.MIN_PLUS, c=c)
    with pytest.raises(sr.GraphError, match="bring them to one device"):
        sr.closure((x, y), sr.DISTANCE_HOPS)


def is_refused(value: Any, error: type[sr.SemiringError], match: str, *, but: tuple[str, ...] = ()) -> None:
    for function in [function for name, function in FUNCTIONS.items() if name not in but]:
        with pytest.raises(error, match=match):
            function(value)
    with pytest.raises(error, match=match):
        sr.matmul(graph(), graph(), sr.MIN_PLUS, out=value)


class TestRefused:
    """What has no numbers that could be read says so, and what would work."""

    def test_a_device_of_others(self) -> None:
        for number in (4, 7, 8, 10):
            is_refused(OnlyDLPack(graph(), (number, 0)), sr.GraphError, "neither in host memory nor on an NVIDIA GPU")

    def test_tensors(self) -> None:
        torch = library("torch")
        tensor = torch.from_numpy(graph())
        differentiated = "matmul", "matmul with witness", "apsp", "closure"
        is_refused(tensor.clone().requires_grad_(), sr.GraphError, r"requires a gradient.*\.detach\(\)", but=differentiated)
        is_refused(tensor.to("meta"), sr.GraphError, "no entries")
        is_refused(tensor.to_sparse(), sr.GraphError, r"sparse; pass \.to_dense\(\)")
        is_refused(torch.complex(tensor, -tensor).conj().imag, sr.GraphError, r"\.resolve_neg\(\)")
        is_refused(tensor.bfloat16(), sr.DTypeError, "bfloat16 is not supported; convert to float32")
        is_refused(torch.complex(tensor, tensor), sr.DTypeError, "complex")
        with pytest.raises(sr.ShapeError, match="share their memory"):
            sr.matmul(graph(), graph(), sr.MIN_PLUS, out=torch.zeros(1, N).expand(N, N))
        with torch.inference_mode():
            np.testing.assert_array_equal(sr.apsp(tensor.clone()).numpy(), sr.apsp(graph()))

    def test_arrays_of_jax(self) -> None:
        jax = library("jax")
        is_refused(jax.numpy.asarray(graph(), jax.numpy.bfloat16), sr.DTypeError, "bfloat16 is not supported; convert to float32")
        with pytest.raises(sr.GraphError, match="tracing a function"):
            jax.jit(sr.diameter)(graph())
        if len(jax.devices()) > 1:
            sharding = jax.sharding.NamedSharding(jax.make_mesh((len(jax.devices()),), ("x",)), jax.sharding.PartitionSpec())
            is_refused(jax.device_put(graph(), sharding), sr.GraphError, r"spread over \d+ devices")

    def test_a_dtype_that_their_library_cuts_off(self) -> None:
        jax = library("jax")
        if jax.config.jax_enable_x64:
            pytest.skip("JAX has all dtypes here")
        a = in_jax(graph(), "cpu")
        for wanted in (np.float64, np.int64):
            with pytest.raises(sr.DTypeError, match="jax_enable_x64"):
                sr.apsp(a, dtype=wanted)
        with pytest.raises(sr.DTypeError, match="jax_enable_x64"):
            sr.matmul(a, graph().astype(np.float64), sr.MIN_PLUS)
        wide = np.empty((N, N))
        found = sr.matmul(a, graph().astype(np.float64), sr.MIN_PLUS, out=wide, witness=True)
        assert found.values is wide
        assert type(found.witness) is np.ndarray
        np.testing.assert_array_equal(wide, sr.matmul(graph(), graph(), sr.MIN_PLUS))

    @pytest.mark.parametrize("name", ["array_api_strict", "torch"])
    def test_exact_entries(self, name: str) -> None:
        array = library(name).asarray(graph())
        with pytest.raises(sr.DTypeError, match="object"):
            sr.apsp(array, dtype=object)
        with pytest.raises(sr.DTypeError, match="object"):
            sr.matmul(array, graph().astype(object), sr.MIN_PLUS)

    def test_bytes_and_vectors(self) -> None:
        array = importlib.import_module("array")
        with pytest.raises(sr.ShapeError, match="square matrix"):
            sr.apsp(array.array("f", [1, 2]))
        found = sr.apsp([array.array("f", row) for row in graph().tolist()])
        np.testing.assert_array_equal(found, sr.apsp(graph()))


@pytest.mark.gpu
class TestNothingCrossesToTheHost:
    """Seen by CUPTI, which sees every copy between the memories, whoever starts it."""

    SIDE = 400

    def crossed(self, function: Callable[[], Any], path: Any) -> int:
        """Bytes of the copies between the host and the GPU."""
        torch = library("torch")
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        torch.cuda.synchronize()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the profiler's own
            with torch.profiler.profile(activities=activities) as profile:
                function()
                torch.cuda.synchronize()
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
        copies = [e for e in events if str(e.get("name", "")).startswith(("Memcpy DtoH", "Memcpy HtoD"))]
        return sum(int(e["args"]["bytes"]) for e in copies)

    def given(self) -> Array:
        return np.kron(np.ones((45, 45), np.float32), graph())[: self.SIDE, : self.SIDE]

    @pytest.mark.parametrize("kind", [k for k in rows() if k.id in ("cupy", "torch-cuda", "jax-cuda", "numba-cuda", "dlpack-cuda")])
    def test_of_whole_matrices(self, kind: Kind, tmp_path: Any) -> None:
        a = self.given()
        array = kind.make(a)
        if self.crossed(lambda: kind.numbers(array), tmp_path / "control.json") < a.nbytes:
            pytest.skip("the profiler sees no copies here")
        half = kind.make(np.where(np.isinf(a), 0, a).astype(np.float16))
        truths = kind.make(np.isfinite(a).astype(np.int32))
        functions: dict[str, Callable[[], Any]] = {
            **{name: lambda f=f: f(kind.lend(array)) for name, f in FUNCTIONS.items()},  # type: ignore[misc]  # a default binds the loop's f
            "float16": lambda: sr.apsp(kind.lend(half), nonedge=0),
            "to integers": lambda: sr.apsp(kind.lend(array), dtype=np.int16),
            "truth values": lambda: sr.transitive_closure(kind.lend(truths)),
            "a product of two dtypes": lambda: sr.matmul(kind.lend(half), kind.lend(array), sr.MIN_PLUS),
            "a product of integers as truth values": lambda: sr.matmul(kind.lend(truths), kind.lend(truths), sr.BOOLEAN),
        }
        for name, function in functions.items():
            function()  # compiles
            crossed = self.crossed(function, tmp_path / "trace.json")
            assert crossed < self.SIDE**2 // 2, f"{name}: {crossed} bytes"
