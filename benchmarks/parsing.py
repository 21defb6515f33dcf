"""Inside probabilities of sentences over a context-free grammar, by `einsum` over LOG, beside torch-struct.

    python -m benchmarks.parsing                           # on a GPU if there is one
    python -m benchmarks.parsing --device cpu --sizes 32,20,10,10 --dtype float64

A size has sentences, words, symbols that become words (T) and others (N). Grammars have torch-struct's form: rules A → B C of each sentence
as an array (sentences, N, N + T, N + T), and weights of words and of the first symbol. All spans of one length, of all sentences, are one
contraction. The largest array has an entry for each span of one length and each pair B C: N times less than torch-struct needs.

Each row has whole calls on arrays of the device: with the rules of each sentence, and with one grammar for all sentences. The first way has
five products a length, which distinguish spans of one word. The second way, that of How-to, Contractions, has two products, and more steps.
torch-struct computes without gradients, and takes one grammar for all sentences as a repeated array.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.measure import best, cores, installed, machine, print_table, version
from semiring.arrays.devices import gpus, namespace

COLUMNS = ("own", "own, all symbols", "own, theirs", "one", "one, all symbols", "one, theirs")
"""Rules of each sentence, or one grammar for all: by parts, by all symbols, and by torch-struct."""


def inside(words: Any, rules: Any, roots: Any, semiring: sr.Semiring) -> Any:
    """The weight of each sentence; `rules` has the rules of each sentence, or of all: then its first axis is absent."""
    xp, (count, length, _), symbols = namespace(words), words.shape, roots.shape[-1]
    contract = partial(sr.einsum, semiring=semiring)
    zero = semiring.identities((np.dtype(words.dtype),))[0][0]
    first = xp.full((count, length, length, symbols), zero, words.dtype)  # by the first word, and the length from the shortest one
    last = first.copy()  # by the last word, and the length from the longest one
    rest, word = slice(symbols), slice(symbols, None)
    pairs = [(word, word), (rest, rest), (word, rest), (rest, word)]
    of_words, *of_spans = (rules[..., b, c].reshape(*rules.shape[:-2], -1) for b, c in pairs)
    of_spans = xp.concatenate(of_spans, axis=-1)
    each = "s" if rules.ndim == 4 else ""
    for n in range(2, length + 1):
        starts = length - n + 1
        if n == 2:
            found = contract("sib,sic->sibc", words[:, :-1], words[:, 1:]).reshape(count, starts, -1)
        else:
            left, right = first[:, :starts, : n - 1], last[:, n - 1 :, starts:]
            parts = [
                contract("sikb,sikc->sibc", left, right),  # spans of one word have the weight zero
                contract("sib,sic->sibc", words[:, :starts], right[:, :, 0]),
                contract("sib,sic->sibc", left[:, :, -1], words[:, n - 1 :]),
            ]
            found = xp.concatenate([v.reshape(count, starts, -1) for v in parts], axis=-1)
        found = contract(f"six,{each}ax->sia", found, of_words if n == 2 else of_spans)
        first[:, :starts, n - 1] = last[:, n - 1 :, length - n] = found
    return contract("sa,sa->s", first[:, 0, -1], roots)


def inside_of_all_symbols(words: Any, rules: Any, roots: Any, semiring: sr.Semiring) -> Any:
    """The same in two products for each length: spans have a weight for each symbol, which is zero where the symbol cannot be."""
    xp, (count, length, terminals), symbols = namespace(words), words.shape, roots.shape[-1]
    zero = semiring.identities((np.dtype(words.dtype),))[0][0]
    first = xp.full((count, length, length, symbols + terminals), zero, words.dtype)
    last = first.copy()
    first[:, :, 0, symbols:] = last[:, :, -1, symbols:] = words
    terms = f"sikb,sikc,{'s' if rules.ndim == 4 else ''}abc->sia"
    for n in range(2, length + 1):
        starts = length - n + 1
        parts = first[:, :starts, : n - 1], last[:, n - 1 :, starts:]
        found = sr.einsum(terms, *parts, rules, semiring=semiring, optimize=[(0, 1), (0, 1)])
        first[:, :starts, n - 1, :symbols] = last[:, n - 1 :, length - n, :symbols] = found
    return sr.einsum("sa,sa->s", first[:, 0, -1, :symbols], roots, semiring=semiring)


def drawn(size: tuple[int, int, int, int], dtype: str) -> tuple[Any, Any, Any]:
    """Random logarithms of probabilities: words, rules and first symbols."""
    count, length, terminals, symbols = size
    rng, every = np.random.default_rng(0), terminals + symbols
    shapes = (count, length, terminals), (count, symbols, every**2), (count, symbols)
    words, rules, roots = (rng.dirichlet(np.ones(shape[-1]), shape[:-1]).clip(1e-9) for shape in shapes)
    return np.log(words).astype(dtype), np.log(rules).reshape(count, symbols, every, every).astype(dtype), np.log(roots).astype(dtype)


def torch_struct(words: Any, rules: Any, roots: Any) -> Callable[[], Any]:
    """The weights of sentences by torch-struct, of PyTorch's tensors."""
    torch, model, logs = (importlib.import_module(name) for name in ("torch", "torch_struct.cky", "torch_struct.semirings"))

    def work() -> Any:
        with torch.no_grad():
            return model.CKY(logs.LogSemiring).logpartition((words, rules.detach(), roots))[0][0].cpu().numpy()

    return work


def measure(size: tuple[int, int, int, int], dtype: str, *, gpu: bool) -> list[str]:
    """A row of the table."""
    words, rules, roots = drawn(size, dtype)
    repeated = np.repeat(rules[:1], size[0], 0)
    xp = importlib.import_module("cupy") if gpu else np
    given = list(map(xp.asarray, (words, rules, roots)))

    def ours(function: Callable[..., Any], shown: Any) -> Callable[[], Any]:
        def work() -> Any:
            found = function(given[0], shown, given[2], sr.LOG)
            return found.get() if gpu else found

        return work

    works: dict[str, Callable[[], Any]] = {}
    for name, shown in (("own", given[1]), ("one", given[1][0])):
        works |= {name: ours(inside, shown), f"{name}, all symbols": ours(inside_of_all_symbols, shown)}
    if installed("torch_struct") is not None:
        torch = importlib.import_module("torch")
        sent = [torch.as_tensor(v, device="cuda" if gpu else "cpu") for v in (words, rules, roots, repeated)]
        works |= {"own, theirs": torch_struct(sent[0], sent[1], sent[2]), "one, theirs": torch_struct(sent[0], sent[3], sent[2])}
        for name, other in (("own", "own, theirs"), ("one", "one, theirs"), ("own, all symbols", "own"), ("one, all symbols", "one")):
            np.testing.assert_allclose(works[name](), works[other](), rtol=1e-4 if dtype == "float32" else 1e-12)
    return [", ".join(map(str, size)), *(f"{1e3 * best(works[name], 5):.1f}" if name in works else "–" for name in COLUMNS)]


def main() -> None:
    """Run the measurements that the command line asks for."""
    parser = argparse.ArgumentParser(description="inside probabilities of sentences")
    parser.add_argument("--sizes", nargs="*", default=["32,20,4,4", "32,20,10,10", "8,20,60,30", "4,40,60,30"], help="sentences,words,T,N")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if gpus() else "cpu")
    options = parser.parse_args()
    if (torch := installed("torch")) is not None:
        torch.set_num_threads(cores())
    print(machine(), "torch-struct", version("torch-struct"), "torch", version("torch"))
    rows = []
    for size in options.sizes:
        count, length, terminals, symbols = map(int, size.split(","))
        rows.append(measure((count, length, terminals, symbols), options.dtype, gpu=options.device == "cuda"))
    print_table(("sentences, words, T, N", *(f"{name.replace('theirs', 'torch-struct')}, ms" for name in COLUMNS)), rows)


if __name__ == "__main__":
    main()
