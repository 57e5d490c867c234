"""`python -m native` builds the kernels of a checkout: those that are installed, and those that check every access."""

from native.build import CHECKED, COMPILED, build

for path in build(COMPILED, CHECKED):
    print(path)
