"""`python -m benchmarks` prints the names of the benchmarks."""

from benchmarks.measure import names

if __name__ == "__main__":
    print("\n".join(names()))
