"""Products, closures and scans inside functions that PyTorch compiles, with gradients: against eager mode, and PyTorch's own operations."""

from __future__ import annotations

import functools
import itertools
import math
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.execution import compiled as compiling
from semiring.execution.numbering import Numbering

torch = pytest.importorskip("torch")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
SHAPES = [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (3, 4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((0, 4), (4, 5))]
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # PyTorch's compiler imports deprecated modules

INF = math.inf
LAST = sr.Semiring("same name", max, lambda a, b: a + b, -INF, 0)
FIRST = sr.Semiring("same name", min, lambda a, b: a + b, INF, 0)
OTHER = sr.Semiring("same name", min, max, INF, 0)
FACTOR = sr.factor(np.ones((3, 3)))


@pytest.fixture(autouse=True)
def many_compilations() -> Iterator[None]:
    torch.compiler.reset()
    torch.manual_seed(0)
    with torch._dynamo.config.patch(recompile_limit=64):
        yield


def compiled(function: Any, backend: str = "aot_eager", **options: Any) -> Any:
    return torch.compile(function, fullgraph=True, backend=backend, **options)


def rand(*shape: int, **options: Any) -> Any:
    return torch.rand(shape, **options)


def graph(*shape: int, **options: Any) -> Any:
    """Distances with ties, and two of five edges missing."""
    a = torch.randint(1, 9, shape).to(**{"dtype": torch.float32, **options})
    return torch.where(rand(*shape, **options) > 0.6, INF, a)


def results(function: Any, operands: Any) -> Any:
    """Values of a function, and gradients of a weighted sum of those that are finite."""
    leaves = [x.detach().clone().requires_grad_() for x in operands]
    found = function(*leaves)
    values = [v for v in (found if isinstance(found, tuple) else (found,)) if v.is_floating_point()]
    weights = [torch.arange(v.numel(), device=v.device).cos().reshape(v.shape).to(v.dtype) for v in values]
    total = sum((torch.where(v.isfinite(), v, 0) * w).sum() for v, w in zip(values, weights, strict=True))
    return found, torch.autograd.grad(total, leaves)


def alike(function: Any, *sets: Any, backend: str = "aot_eager", **options: Any) -> None:
    """Compare a compiled function with eager mode, with gradients and without."""
    other = compiled(function, backend, **options)
    for operands in sets:
        torch.testing.assert_close(other(*operands), function(*operands))
        torch.testing.assert_close(results(other, operands), results(function, operands))


def squared(a: Any, b: Any, semiring: Any) -> Any:
    return sr.matmul(a + 1, b, semiring).square().sum()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, "max-times", sr.LOG, sr.PLUS_TIMES], ids=str)
def test_products(semiring: Any, device: str) -> None:
    for left, right in SHAPES:
        a, b = torch.rand(left, device=device, requires_grad=True), torch.rand(right, device=device, requires_grad=True)
        found = torch.autograd.grad(compiled(squared)(a, b, semiring), (a, b))
        torch.testing.assert_close(found, torch.autograd.grad(squared(a, b, semiring), (a, b)))


CLOSURES: dict[str, Any] = {
    "apsp": lambda a: sr.apsp(a),
    "sources": lambda a: sr.apsp(a, sources=[1, 0, 1], targets=2),
    "a target": lambda a: sr.apsp(a, targets=range(2)),
    "nonedge": lambda a: sr.apsp(torch.where(a.isinf(), 0, a), nonedge=0),
    "widest cycles": lambda a: sr.closure(torch.where(a.isinf(), -INF, a), sr.MAX_MIN, reflexive=False),
    "log": lambda a: sr.closure(-a - 9, "log"),
    "log, cycles": lambda a: sr.closure(-a - 9, sr.LOG, reflexive=False, sources=1),
    "inverse": lambda a: sr.closure(1 / a / 99, sr.PLUS_TIMES),
    "hops": lambda a: sr.closure((a, torch.where(a.isinf(), INF, 1)), "distance-hops"),
    "blocked": lambda a: sr.closure(a, sr.MIN_PLUS, method="blocked", block=2, check=False),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CLOSURES)
def test_closures(name: str, device: str) -> None:
    sizes = [(3, 3), (7, 7), (2, 5, 5)] + ([(0, 0), (1, 1), (31, 31)] if name in ("apsp", "log", "inverse") else [])
    alike(CLOSURES[name], *([graph(*size, device=device)] for size in sizes), [graph(4, 4, dtype=torch.float64, device=device)])


SCANS: dict[str, tuple[Any, list[list[tuple[int, ...]]]]] = {
    "log": (lambda a, w: sr.scan(a, sr.LOG, weights=w), [[(n, n), (t, n)] for n, t in ((3, 4), (5, 7), (1, 1), (3, 0), (31, 2))]),
    "best": (lambda a, w: sr.scan(a, "max-plus", weights=w, witness=True), [[(3, 3), (4, 3)], [(2, 5, 3, 3), (5, 3)]]),
    "last": (lambda a, v: sr.scan(a, sr.LOG, v, last=True), [[(2, 4, 3, 3), (3,)], [(5, 2, 2), (3, 2)]]),
    "reverse": (lambda a, v, w: sr.scan(a, sr.PLUS_TIMES, v, weights=w, reverse=True), [[(4, 3, 3), (2, 3), (4, 3)]]),
    "steps": (lambda a: sr.scan(a, sr.MIN_PLUS, lengths=3), [[(3, 3)], [(4, 4)]]),
    "lengths": (lambda a, w: sr.scan(a, sr.LOG, weights=w, lengths=[1, 4], last=True), [[(3, 3), (2, 4, 3)]]),
    "hops": (lambda a: sr.scan((a, a * 0 + 1), "distance-hops", lengths=3), [[(3, 3)]]),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SCANS)
def test_scans(name: str, device: str) -> None:
    function, forms = SCANS[name]
    alike(
        function,
        *([rand(*shape, device=device) for shape in shapes] for shapes in forms),
        [rand(*s, dtype=torch.float64) for s in forms[0]],
    )


def test_chains_and_contractions() -> None:
    alike(lambda a, b, c: sr.multi_dot([a, b, c], sr.MIN_PLUS), *([rand(n, 4), rand(4, n), rand(n)] for n in (3, 5, 1)))
    alike(lambda a, b, c: sr.einsum("ij,jk,kl->il", a, b, c, semiring="log"), *([rand(n, 4), rand(4, n), rand(n, 2)] for n in (3, 1)))
    alike(lambda a, b: sr.einsum(a, [0, 1], b, [1, 2], [0, 2], semiring=LAST, optimize=False), [rand(3, 4), rand(4, 2)])
    a, b, c = rand(3, 4), rand(4, 5), rand(5, 2)
    found = compiled(lambda a, b, c: sr.einsum("ij,jk,kl->il", a, b, c, semiring=sr.PLUS_TIMES))(a, b, c)
    torch.testing.assert_close(found, torch.einsum("ij,jk,kl->il", a, b, c))


def test_against_pytorch() -> None:
    def by_rank_one_updates(a: Any) -> Any:
        d = torch.where(torch.eye(6, dtype=torch.bool), 0, a)
        for k in range(6):
            d = torch.minimum(d, d[:, k, None] + d[None, k])
        return d

    a = rand(6, 6, dtype=torch.float64)
    torch.testing.assert_close(results(compiled(sr.apsp), [a]), results(by_rank_one_updates, [a]))
    inverse = compiled(lambda a: sr.closure(a / 9, sr.PLUS_TIMES))
    torch.testing.assert_close(results(inverse, [a]), results(lambda a: torch.linalg.inv(torch.eye(6) - a / 9), [a]))

    def by_steps(a: Any, w: Any) -> Any:
        v = torch.zeros(6, dtype=a.dtype)
        for t in range(4):
            v = (v[:, None] + a).logsumexp(0) + w[t]
        return v

    last = compiled(lambda a, w: sr.scan(a, sr.LOG, weights=w, last=True))
    torch.testing.assert_close(results(last, [a, a[:4]]), results(by_steps, [a, a[:4]]))


@pytest.mark.exhaustive
def test_inductor() -> None:
    alike(lambda a: sr.apsp(a * 2).square(), [graph(5, 5)], [graph(9, 9)], backend="inductor")
    alike(lambda a, w: sr.scan(a, sr.LOG, weights=w + 1), [rand(3, 3), rand(4, 3)], [rand(5, 5), rand(2, 5)], backend="inductor")
    alike(lambda a, b: sr.matmul(a, b, sr.LOG) + 1, [rand(2, 3, 4), rand(4, 3)], backend="inductor")


def test_structured_elements_and_witnesses() -> None:
    a, b = torch.rand(3, 4), torch.rand(4, 5)
    pair = (a, torch.ones(3, 4)), (b, torch.ones(4, 5))
    found = compiled(lambda x, y: sr.matmul(x, y, "distance-hops"))(*pair)
    assert all(map(torch.equal, found, sr.matmul(*pair, "distance-hops")))
    found = compiled(lambda a, b: sr.matmul(a, b, sr.MIN_PLUS, witness=True))(a, b)
    assert torch.equal(found.witness, sr.matmul(a, b, sr.MIN_PLUS, witness=True).witness)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.int64], ids=str)
def test_dtypes_without_a_gradient(dtype: Any) -> None:
    a, b = torch.randint(0, 2, (4, 4)).to(dtype), rand(4, 4, dtype=torch.float64)
    functions = [
        lambda a, b: sr.matmul(a, a, sr.BOOLEAN),
        lambda a, b: sr.closure(a, sr.BOOLEAN),
        lambda a, b: sr.scan(a, sr.BOOLEAN, lengths=3),
    ]
    if dtype is not torch.bool:
        functions += [
            lambda a, b: sr.matmul(a, b, sr.MIN_PLUS),
            lambda a, b: sr.apsp(a, nonedge=0),
            lambda a, b: sr.scan(a, sr.MIN_PLUS, lengths=3),
            lambda a, b: sr.multi_dot([a, a, a], "min-plus"),
        ]
    for function in functions:
        found, expected = compiled(function)(a, b), function(a, b)
        assert found.dtype is expected.dtype
        assert torch.equal(found, expected)


@pytest.mark.parametrize("dynamic", [None, True])
def test_one_compilation_serves_many_shapes(dynamic: bool | None) -> None:
    counted = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")

    def function(a: Any, w: Any) -> Any:
        product, paths = sr.matmul(a, a, sr.MIN_PLUS), sr.apsp(a, sources=[0, 2])
        return product.sum() + paths.sum() + sr.scan(a, sr.LOG, weights=w).sum() + sr.closure(a, sr.MAX_MIN).sum()

    other = torch.compile(function, fullgraph=True, backend=counted, dynamic=dynamic)
    for n, t in ((3, 4), (4, 5), (7, 2), (31, 9)):
        operands = rand(n, n), rand(t, n)
        torch.testing.assert_close(results(other, operands), results(function, operands))
    assert counted.frame_count == (2 if dynamic is None else 1)


def test_vmap() -> None:
    a, b = rand(2, 3, 3), rand(3, 4, 3)
    alike(torch.vmap(lambda a: sr.matmul(a, a, sr.MIN_PLUS)), [a])
    alike(torch.vmap(lambda a: sr.apsp(a, sources=[2, 0])), [a])
    alike(torch.vmap(lambda a: sr.closure(a - 9, sr.LOG)), [a])
    alike(torch.vmap(lambda a, w: sr.scan(a, sr.MAX_PLUS, weights=w, last=True), in_dims=(None, 0)), [a[0], b])
    alike(torch.vmap(lambda a: sr.scan(a, sr.LOG, lengths=2), in_dims=1), [a.movedim(0, 1).contiguous()])


def test_semirings_and_numbers_change() -> None:
    a, again = rand(3, 3), sr.Semiring("same name", max, lambda a, b: a + b, -INF, 0)

    chosen: list[Any] = [None, 0, 1]

    def product(a: Any) -> Any:
        return sr.matmul(a, a, chosen[0])[chosen[1]] * chosen[2]

    def given(a: Any, semiring: Any, number: Any, nonedge: float) -> Any:
        return sr.closure(torch.where(a < nonedge, nonedge, a), semiring, sources=[0, number], nonedge=nonedge)

    other, another = compiled(product), compiled(given)
    for chosen[:] in ([FIRST, 0, 1], [LAST, 0, 2], [again, 1, 3], [FIRST, 2, 2], [sr.MAX_MIN, 1, 1]):
        assert torch.equal(other(a), product(a))
    cases: list[tuple[Any, int, float]] = [(FIRST, 0, 0.1), ("min-plus", 1, 0.2), (sr.MAX_MIN, 2, 0.3), (FIRST, 1, 0.2)]
    for semiring, number, nonedge in cases:
        assert torch.equal(another(a, semiring, number, nonedge), given(a, semiring, number, nonedge))


def test_semirings_that_are_made_inside() -> None:
    """A relaxation, or another semiring, breaks the graph."""

    def function(a: Any, temperature: Any) -> Any:
        semiring = sr.MIN_PLUS.smooth(temperature)
        torch._dynamo.graph_break()
        return sr.matmul(a, a, semiring) + semiring.one

    a = rand(3, 3)
    for temperature in (0.5, 2, 0, *(1 + t / 7 for t in range(10))):  # more than the compiler compiles
        given = [functools.partial(f, temperature=temperature) for f in (torch.compile(function, backend="eager"), function)]
        torch.testing.assert_close(results(given[0], [a]), results(given[1], [a]))
    assert sr.MIN_PLUS.smooth(2) is sr.MIN_PLUS.smooth(2.0)
    with pytest.raises(sr.SemiringError, match="log has no relaxation"):
        torch.compile(lambda a: sr.matmul(a, a, sr.LOG.smooth(1)), backend="eager")(a)

    def marked(a: Any) -> Any:
        return sr.matmul(a, a, sr.MIN_PLUS.with_witness())[1]

    assert torch.equal(torch.compile(marked, backend="eager")(a), marked(a))
    assert torch.equal(compiled(lambda a: sr.matmul(a, a, sr.MAX_PLUS))(a), sr.matmul(a, a, sr.MAX_PLUS))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64], ids=str)
def test_reachability(dtype: Any) -> None:
    functions: list[Any] = [
        lambda a: sr.transitive_closure(a),
        lambda a: sr.transitive_closure(a, reflexive=True, sources=[2, 0, 2], targets=1),
        lambda a: sr.transitive_closure(a, nonedge=1),  # the others are edges
        lambda a: sr.transitive_closure([a, a[:2, :2]])[1],
        torch.vmap(lambda a: sr.transitive_closure(a, nonedge=0)),
    ]
    for n in (3, 7):
        a = (rand(2, n, n) > 0.8).to(dtype)
        for function in functions:
            given = a if function is functions[-1] else a[0]
            assert torch.equal(compiled(function)(given), function(given))
        steps = torch.linalg.matrix_power((torch.eye(n) + a.float()).clamp(max=1), n) > 0
        assert torch.equal(compiled(functions[-1])(a), (a.float() @ steps.float()) > 0)
    empty = torch.zeros(0, 0, dtype=dtype)
    assert torch.equal(compiled(functions[0])(empty), empty.bool())


def test_no_gradient() -> None:
    def function(a: Any) -> Any:
        with torch.no_grad():
            d = sr.apsp(a)
        return d * a

    alike(function, [rand(4, 4)])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_short_floats(dtype: Any) -> None:
    def function(a: Any) -> Any:
        return sr.apsp(a @ a), sr.scan(a @ a, sr.LOG, lengths=3), sr.matmul(a @ a, a, sr.LOG)

    a = rand(4, 4)
    with torch.autocast("cpu", dtype=dtype):
        (found, gradients), expected = results(compiled(function), [a]), results(function, [a])
    torch.testing.assert_close(found, expected[0])
    torch.testing.assert_close(gradients, expected[1], rtol=0.1, atol=0.1)  # rounded in another order
    assert {v.dtype for v in (*found, *expected[0], *gradients)} == {torch.float32}
    found = compiled(function)(a.to(dtype))
    assert {v.dtype for v in found} == {torch.float32}


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict: bool) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]  # PyTorch has no types here
        def forward(self, a: Any) -> Any:
            return sr.apsp(a) + sr.scan(a, sr.LOG, lengths=3, last=True)

    a = rand(4, 4)
    torch.testing.assert_close(torch.export.export(Module(), (a,), strict=strict).module()(a), Module()(a))


@pytest.mark.parametrize("function", [lambda a: sr.matmul(a, a, sr.LOG), sr.apsp, lambda a: sr.scan(a, sr.MAX_PLUS, lengths=3)])
def test_gradients_of_exported_functions(function: Any) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]  # PyTorch has no types here
        def forward(self, a: Any) -> Any:
            return function(a)

    a = rand(3, 3)
    with pytest.raises(sr.GraphError, match="export or trace it with tensors that require a gradient"):
        torch.export.export(Module(), (a,)).module()(a.requires_grad_()).sum().backward()
    exported = torch.export.export(Module(), (a,)).module()
    torch.testing.assert_close(results(exported, [a]), results(function, [a]))


def test_an_exported_function_computes_over_its_own_semiring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]  # PyTorch has no types here
        def forward(self, a: Any) -> Any:
            return sr.matmul(a, a, FIRST)

    a = rand(4, 4)
    torch.export.save(torch.export.export(Module(), (a,)), tmp_path / "function.pt2")
    loaded = torch.export.load(tmp_path / "function.pt2").module()
    assert torch.equal(loaded(a), Module()(a))
    monkeypatch.setattr(compiling, "_calls", Numbering())  # as in another process
    compiled(lambda a: sr.matmul(a, a, OTHER))(a)
    with pytest.raises(sr.GraphError, match="compiled in another process"):
        loaded(a)
    compiled(lambda a: sr.matmul(a, a, FIRST))(a)
    assert torch.equal(loaded(a), Module()(a))


def test_numbers() -> None:
    """Calls have numbers of their own, whichever comes first; threads share them."""
    code = """if True:
        import torch, semiring as sr
        from semiring.execution import compiled
        inf, plus = float("inf"), lambda a, b: a + b
        made = (plus, None), (max, None), (plus, lambda a: 0 if a >= 0 else 1)
        own = [sr.Semiring("own", min, mul, inf, 0, star=star, domain=(0, inf)) for mul, star in made]
        a = torch.rand(3, 3, requires_grad=True)
        functions = [
            lambda a, s=s, t=t, k=k: sr.closure(a, s) if k else sr.matmul(a, a, s, ties=t)
            for s in own for t, k in (("first", 0), ("split", 0), ("first", 1))
        ]
        for i in ORDER:
            for x in (a, a.detach()):
                torch.compile(functions[i], backend="eager", fullgraph=True)(x)
                torch.compiler.reset()
        print(*sorted(compiled._calls))
    """
    first, second = (
        subprocess.check_output([sys.executable, "-c", code.replace("ORDER", f"range(9)[::{step}]")], text=True) for step in (1, -1)
    )
    assert first == second
    numbers = [*map(int, first.split())]
    assert len(numbers) == 15  # the ties of products without a gradient are no difference
    assert all(y - x > 1 for x, y in itertools.pairwise(numbers))
    with ThreadPoolExecutor(8) as threads:
        numbers = [*threads.map(lambda i: sr.Semiring(f"thread {i % 20}", min, lambda a, b: a + b, INF, 0).number(), range(200))]
    assert all(sr.Semiring.numbered[number].name == f"thread {i % 20}" for i, number in enumerate(numbers))


REFUSED: dict[str, tuple[Any, str]] = {
    "c": (lambda a: sr.matmul(a, a, sr.MIN_PLUS, c=a), r"inside torch\.compile, c, out, mask, dtype and overflow do not work"),
    "k": (lambda a: sr.matmul(a, a, sr.MIN_PLUS, k=2), "the entries of a tensor are unknown while PyTorch compiles"),
    "paths": (lambda a: sr.apsp(a, paths=True), r"inside torch\.compile, paths= does not work"),
    "limit": (lambda a: sr.apsp(a, limit=3), r"inside torch\.compile, limit= does not work"),
    "a tensor of sources": (lambda a: sr.apsp(a, sources=torch.tensor([1])), "entries of sources are unknown .* pass numbers in a list"),
    "an array of targets": (lambda a: sr.apsp(a, targets=np.array([1])), "entries of targets are unknown .* pass numbers in a list"),
    "a list of tensors": (lambda a: sr.apsp(a, sources=[torch.tensor(1)]), "entries of sources are unknown"),
    "no vertex": (lambda a: sr.apsp(a, sources=3), "there is no vertex 3"),
    "lengths": (lambda a: sr.scan(a, sr.LOG, lengths=torch.tensor(3)), "entries of lengths are unknown .* pass numbers in a list"),
    "an array of lengths": (lambda a: sr.scan(a, sr.LOG, lengths=np.array(3)), "entries of lengths are unknown"),
    "samples": (lambda a: sr.scan(a, sr.LOG, lengths=3, sample=1), r"inside torch\.compile, samples do not work"),
    "witness": (lambda a: sr.einsum("ij,jk->ik", a, a, semiring=FIRST, witness=True), r"inside torch\.compile, out, witness and"),
    "hops": (lambda a: sr.scan((a, a), "distance-hops", lengths=2, witness=True), "witness of structured elements does not work"),
    "an object": (lambda a: sr.apsp(a, progress=print), "takes dense tensors, numbers and names, and no"),
    "jvp": (lambda a: torch.func.jvp(sr.apsp, (a,), (a,)), r"only torch\.func\.vmap works"),
    "grad": (lambda a: torch.func.grad(lambda a: sr.apsp(a).sum())(a), r"only torch\.func\.vmap works"),
    "not square": (lambda a: sr.apsp(a[:2]), "a graph is a square matrix"),
    "one axis": (lambda a: sr.apsp(a[0]), "a graph is a square matrix"),
    "NaN": (lambda a: sr.apsp(a * math.nan), "NaN is not an element"),
    "a cycle": (lambda a: sr.apsp(a - 2), "the graph has a negative cycle"),
    "power": (lambda a: sr.power(a, 2, sr.LOG), r"power does not work inside torch\.compile; .* within torch\.compiler\.disable"),
    "pairwise": (lambda a: sr.pairwise(a[:, :2], a[:, 1:]), r"pairwise does not work inside torch\.compile"),
    "factor": (lambda a: sr.factor(a), r"factor does not work inside torch\.compile"),
    "solve": (lambda a: FACTOR.solve(a[0]), r"solve does not work inside torch\.compile"),
    "floats as edges": (lambda a: sr.transitive_closure(a, nonedge=0), "Pass a tensor of bool, such as graph != 0"),
    "numbers that are no truth values": (lambda a: sr.transitive_closure((4 * a + 2).int()), "neither 0 nor 1; pass nonedge=0"),
    "nested lists": (lambda a: sr.matmul([[a[0, 0]]], [[a[0, 0]]], sr.LOG), r"nested list .* such as torch\.stack"),
    "a relaxation": (lambda a: sr.matmul(a, a, sr.MIN_PLUS.smooth(2)), "make the relaxation outside"),
    "a nested list": (lambda a: sr.matmul([[a[0, 0]] * 3], a, sr.LOG), r"a is a list; pass a tensor, such as torch\.stack"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises(Exception, match=message):
        compiled(function)(rand(3, 3))


def test_lists() -> None:
    def function(a: Any, b: Any) -> Any:
        return sr.apsp([a, b])

    a, b = rand(3, 3).requires_grad_(), rand(4, 4).requires_grad_()
    found, expected = compiled(function)(a, b), function(a, b)
    assert isinstance(found, list)
    assert all(map(torch.equal, found, expected))
    gradients, own = (torch.autograd.grad(sum(x.sum() for x in values), (a, b)) for values in (found, expected))
    assert all(map(torch.equal, gradients, own))


def test_no_adjoint() -> None:
    def function(a: Any) -> Any:
        return sr.closure((a, a * 0 + 1), "distance-count")[0]

    a = rand(3, 3) + 1
    assert torch.equal(compiled(function)(a), function(a))
    with pytest.raises(Exception, match="no gradient passes through closures"):
        compiled(function)(a.requires_grad_())


def test_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    a, w = (rand(3, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    calls: dict[str, tuple[Any, list[Any]]] = {
        "product": (lambda: sr.matmul(a, w, sr.LOG), [a, w]),
        "closure": (lambda: sr.apsp(a), [a]),
        "scan": (lambda: sr.scan(a, sr.LOG, weights=w, last=True), [a[None], w, w[0]]),
    }
    for function, operands in calls.values():
        monkeypatch.setattr(compiling, "_calls", Numbering())
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
            function()
        (number,) = compiling._calls
        torch.library.opcheck(torch.ops.semiring.call.default, ([x.detach().clone().requires_grad_() for x in operands], number))
    with pytest.raises(sr.GraphError, match="compiled in another process"):
        torch.ops.semiring.call([a], 1)
