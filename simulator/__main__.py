"""``python -m simulator`` is the ``kernelcast`` command."""

from simulator.cli.app import main

main()
