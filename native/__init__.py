"""Kernels become a compiled module: `windrow.kernels` is translated into C and built when the package is."""
