"""Decode a sequence: find the throws for which a casino used a loaded die.

The casino has a fair die and a loaded one, which shows a six half of the time, and changes them rarely (Durbin et al.,
"Biological sequence analysis", 1998, section 3.2). Only the throws are seen.

    python examples/sequences.py
"""

import numpy as np

import semiring as sr

CHANGE = np.array([[0.95, 0.05], [0.10, 0.90]])  # from fair or loaded to fair or loaded
THROW = np.array([[1 / 6] * 6, [0.1] * 5 + [0.5]])  # chances of 1 … 6 with each die


def simulated(length: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return dice and throws."""
    rng, dice = np.random.default_rng(seed), [0]
    while len(dice) < length:
        dice.append(rng.choice(2, p=CHANGE[dice[-1]]))
    return np.array(dice), np.array([rng.choice(6, p=THROW[die]) for die in dice])


def main() -> None:
    """Print throws, dice, and the dice of the most likely sequence and of the most likely die at each throw."""
    dice, throws = simulated(1000, seed=1)
    change, throw = np.log(CHANGE), np.log(THROW)[:, throws].T
    start = np.log([0.5, 0.5]) + throw[0]
    best = sr.scan(change, sr.MAX_PLUS, start, weights=throw[1:], witness=True).states
    forward = sr.scan(change, sr.LOG, start, weights=throw[1:])
    backward = sr.scan(change, sr.LOG, np.zeros(2), weights=throw[1:], reverse=True)
    likely = (forward + backward).argmax(-1)
    for name, row in (("throws", throws + 1), ("dice", dice), ("best sequence", best), ("best die", likely)):
        print(f"{name:14}", "".join(map(str, row[:60])))
    print(f"right: {np.mean(best == dice):.0%} of the best sequence, {np.mean(likely == dice):.0%} of the best dice")


if __name__ == "__main__":
    main()
