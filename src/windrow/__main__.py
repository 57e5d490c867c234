"""`python -m windrow` is the `windrow` command."""

from windrow.cli.main import main

if __name__ == "__main__":
    main()
