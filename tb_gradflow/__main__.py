"""`python -m tb_gradflow`: the same as `tb-gradflow`."""

import sys

from tb_gradflow.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
