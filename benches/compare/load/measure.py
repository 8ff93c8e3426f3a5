"""Runs one warm-up epoch and one measured epoch of a loader, and prints a line of JSON."""

import json
import os
import time


def processes():
    """Returns the ids of this process and of its descendants."""
    left = [os.getpid()]
    for pid in left:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as children:
                    left += [int(child) for child in children.read().split()]
        except OSError:
            pass  # It has just exited.
    return left


def anonymous():
    """Returns the anonymous memory of this process and its descendants in bytes."""
    total = 0
    for pid in processes():
        try:
            with open(f"/proc/{pid}/status") as status:
                total += sum(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon:"))
        except OSError:
            pass
    return total


def processor():
    """Returns the CPU seconds of this process and its descendants, those that ended included."""
    ticks = 0
    for pid in processes():
        try:
            with open(f"/proc/{pid}/stat") as stat:
                # Behind the name, which may have spaces: utime, stime, and those of children that ended.
                ticks += sum(map(int, stat.read().rpartition(")")[2].split()[11:15]))
        except OSError:
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


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
