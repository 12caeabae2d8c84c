"""Figure 1 of the paper: six algorithms on three synthetic bandits.

    python figure1.py [FOLDER] [ROUNDS]

A first look with few repetitions; the folder then holds results, figures and a report that opens in a browser. A run that
was stopped goes on where it was.
"""

from __future__ import annotations

import sys

import neuralcb


def main() -> None:
    folder = sys.argv[1] if len(sys.argv) > 1 else "results/fig1"
    small = {"n": int(sys.argv[2]), "reps": 1, "test_contexts": 200} if len(sys.argv) > 2 else {}
    made = neuralcb.reproduce("fig1", quick=True, out=folder, **small)
    print(made)
    print(f"report in {made.report}")


if __name__ == "__main__":
    main()
