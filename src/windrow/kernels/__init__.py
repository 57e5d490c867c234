"""Every compiled loop: arrays in, arrays out, nothing else.

A kernel is imported where it is called, never at the top of another room's module: whoever needs no kernel does not
pay for loading the compiler.
"""
