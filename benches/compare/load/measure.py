"""Runs one warm-up epoch and one measured epoch of a loader, and prints a line of JSON."""

import json
import os
import resource
import time


def anonymous():
    """Returns the anonymous memory of this process and its children in bytes."""
    total, left = 0, [os.getpid()]
    while left:
        pid = left.pop()
        try:
            with open(f"/proc/{pid}/status") as status:
                total += sum(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon:"))
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as children:
                    left += [int(child) for child in children.read().split()]
        except OSError:
            pass  # It has just exited.
    return total


def processor():
    """Returns the CPU seconds of this process and of its finished children."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage)


def measure(name, version, epoch):
    """`epoch()` yields each batch's images, `[N, 224, 224, 3]` or `[N, 3, 224, 224]` u8."""

    def run():
        images, peak = 0, 0
        for batch in epoch():
            assert sorted(batch.shape[1:]) == [3, 224, 224], batch.shape
            images += batch.shape[0]
            peak = max(peak, anonymous())
        return images, peak

    run()
    start, before = time.perf_counter(), processor()
    images, peak = run()
    seconds, used = time.perf_counter() - start, processor() - before
    print(json.dumps({
        "name": name,
        "version": version,
        "images": images,
        "images_per_s": images / seconds,
        "cpu_s_per_1000": 1000 * used / images,
        "peak_anon_bytes": peak,
    }))
