"""A neighbour of model.py."""


def doubled(x):
    return x * 2


def fails():
    raise KeyError("inner")
