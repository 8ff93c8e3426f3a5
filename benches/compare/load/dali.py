"""The CPU pipeline of DALI over exported shards with their indexes: dali.py EXPORTED IMAGES"""

import glob
import sys

from nvidia import dali
from nvidia.dali import fn, tfrecord, types

from measure import measure

THREADS = 2


@dali.pipeline_def(batch_size=256, num_threads=THREADS, device_id=None, seed=1)
def pipeline(files, indexes):
    features = {"image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, "")}
    read = fn.readers.tfrecord(path=files, index_path=indexes, features=features, random_shuffle=True, name="reader")
    images = fn.decoders.image_random_crop(
        read["image/encoded"], device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
    )
    images = fn.resize(images, size=[224, 224], interp_type=types.INTERP_LINEAR, antialias=True)
    return fn.flip(images, horizontal=fn.random.coin_flip())


def main(exported, images):
    files, indexes = sorted(glob.glob(f"{exported}/*.tfrecord")), sorted(glob.glob(f"{exported}/**/*.idx", recursive=True))
    built = pipeline(files, indexes)
    built.build()

    def epoch():
        for _ in range(images // 256):
            yield built.run()[0].as_array()

    measure("DALI (CPU)", dali.__version__, epoch)


main(sys.argv[1], int(sys.argv[2]))
