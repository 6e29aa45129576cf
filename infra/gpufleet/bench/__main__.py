"""``python -m gpufleet.bench``: the bench without the rest of gpufleet (this is what a Job's archive runs)."""

import argparse
import sys

from gpufleet.bench.options import add_arguments, execute


def main() -> int:
    parser = argparse.ArgumentParser(prog="gpufleet-bench", description="Measure how processes share one GPU.")
    add_arguments(parser)
    return execute(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
