"""A neighbour of model.py."""

import numpy as np


def array(dtype, value):
    return np.array([value], dtype)
