"""Reads what the function memory of stack.sh has written."""


def read(file):
    """Samples, each a dictionary with its time in seconds."""
    samples = []
    with open(file, encoding="utf-8") as lines:
        for name, value in (line.strip().split("=") for line in lines):
            if name == "time":
                samples.append({})
            samples[-1][name] = float(value)
    return samples
