"""The whole task left to torch."""


def add(x, y):
    return x + y
