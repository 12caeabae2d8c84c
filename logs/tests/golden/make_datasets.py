#!/usr/bin/env python3
"""Writes datasets.json: fingerprints of the prepared data sets, made with pandas, numpy and scikit-learn.

    pip install numpy==2.4.6 pandas==3.1.1 scikit-learn==1.9.1
    python3 logs/tests/golden/make_datasets.py DATA_FOLDER

A row's fingerprint is sum_j cos(j) * x[i, j]: it moves if a value, the order of the columns or that of the rows
changes. Everything is float64. Raw files come through pandas' own readers, dummies from get_dummies, scales from
StandardScaler and normalize.
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler, normalize

folder = Path(sys.argv[1])
N_ROWS = 7  # rows per data set, spread evenly from the first to the last


def standardised(x):
    return StandardScaler().fit_transform(np.asarray(x, dtype=np.float64))


def unit(x):
    return normalize(standardised(x))


def mushroom():
    table = pd.read_csv(folder / "mushroom/agaricus-lepiota.data", header=None, keep_default_na=False)
    labels = (table[0] == "p").to_numpy().astype(int)
    x = pd.get_dummies(table.drop(columns=0)).to_numpy().astype(float)
    return {"paper": (unit(x), labels), "released-code": (x, labels)}


def statlog():
    table = pd.read_csv(folder / "shuttle/shuttle.trn", header=None, sep=" ").to_numpy().astype(float)
    labels = table[:, -1].astype(int) - 1
    return {"paper": (unit(table[:, :-1]), labels), "released-code": (standardised(table[::-1]), labels)}


def adult():
    read = lambda name, **how: pd.read_csv(
        folder / "adult" / name, header=None, na_values=["?"], skipinitialspace=True, **how
    ).dropna()
    train, test = read("adult.data"), read("adult.test", comment="|")

    def both(table):
        labels = table[6].astype("category").cat.codes.to_numpy().astype(int)
        dummies = pd.get_dummies(table.drop(columns=6), columns=[1, 3, 5, 7, 8, 9, 13, 14])
        return dummies.to_numpy().astype(float), labels

    x, labels = both(pd.concat([train, test], ignore_index=True))
    stripped = pd.concat([train, test], ignore_index=True)
    stripped[14] = stripped[14].str.rstrip(".")
    y, _ = both(stripped)
    z, train_labels = both(train)
    return {
        "paper": (unit(x), labels),
        "paper, dot stripped": (unit(y), labels),
        "released-code": (standardised(z), train_labels),
    }


def mnist():
    def part(name):
        images = gzip.open(folder / f"mnist/{name}-images-idx3-ubyte.gz").read()[16:]
        labels = gzip.open(folder / f"mnist/{name}-labels-idx1-ubyte.gz").read()[8:]
        x = np.frombuffer(images, dtype=np.uint8).reshape(-1, 784).astype(np.float64)
        return x, np.frombuffer(labels, dtype=np.uint8).astype(int)

    (train, train_labels), (test, test_labels) = part("train"), part("t10k")
    labels = np.concatenate([train_labels, test_labels])
    return {
        "paper": (unit(np.concatenate([train, test])), labels),
        "released-code": (np.concatenate([standardised(train), standardised(test)]), labels),
    }


def fingerprint(x, labels):
    rows = np.linspace(0, len(x) - 1, N_ROWS).astype(int)
    return {
        "n_rows": len(x),
        "dim": x.shape[1],
        "histogram": np.bincount(labels).tolist(),
        "rows": rows.tolist(),
        "labels": labels[rows].tolist(),
        "prints": (x[rows] @ np.cos(np.arange(x.shape[1]))).tolist(),
    }


golden = {
    data.__name__: {name: fingerprint(*made) for name, made in data().items()} for data in (mushroom, statlog, adult, mnist)
}
target = Path(__file__).parent / "datasets.json"
target.write_text(json.dumps(golden, indent=1) + "\n")
