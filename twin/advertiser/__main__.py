"""python -m twin.advertiser --kubeconfig K [--log L]"""

from __future__ import annotations

import argparse
import logging
import signal

from .controller import Controller
from .kube import Kube


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m twin.advertiser", description="Kubelets and GPU software of "
                                     "simulated nodes: reads what plugin pods mount and sets what nodes offer.")
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--log", help="JSON lines: what each node was made to offer, and why")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    controller = Controller(Kube(args.kubeconfig), args.log)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: controller.stop.set())
    controller.run()
    return 0


raise SystemExit(main())
