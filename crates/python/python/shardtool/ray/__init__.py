"""Packs with the tasks of a Ray cluster, reads datasets into Ray Data, and writes, changes and verifies them with its tasks.

    import shardtool.ray

    shardtool.ray.pack("s3://photos/list.csv", "s3://datasets/imagenet", num_cpus=4)
    images = shardtool.ray.read("s3://datasets/imagenet", columns=["weight"])      # a ray.data.Dataset
    images.filter(is_sharp).write_datasink(shardtool.ray.Sink("s3://datasets/sharp"))
    print(shardtool.ray.verify("s3://datasets/sharp"))
    captions.write_datasink(shardtool.ray.ColumnSink("s3://datasets/sharp"))
"""

from .columns import ColumnSink
from .packing import pack
from .reading import read
from .sink import Sink
from .verifying import verify

__all__ = ["ColumnSink", "Sink", "pack", "read", "verify"]
