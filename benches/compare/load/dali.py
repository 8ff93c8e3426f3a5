"""The CPU pipeline of DALI over exported shards with their indexes: dali.py WORK EXPORTED IMAGES"""

import glob
import sys

from nvidia import dali
from nvidia.dali import fn, tfrecord, types

from measure import measure

THREADS = 2


@dali.pipeline_def(batch_size=256, num_threads=THREADS, device_id=None, seed=1)
def pipeline(work, files, indexes):
    features = {"image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, "")}
    shuffle = work == "train"
    read = fn.readers.tfrecord(path=files, index_path=indexes, features=features, random_shuffle=shuffle, name="reader")
    if work == "eval":
        images = fn.decoders.image(read["image/encoded"], device="cpu")
        images = fn.resize(images, resize_shorter=256, interp_type=types.INTERP_LINEAR, antialias=True)
        return fn.crop(images, crop=(224, 224))
    images = fn.decoders.image_random_crop(
        read["image/encoded"], device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
    )
    images = fn.resize(images, size=[224, 224], interp_type=types.INTERP_LINEAR, antialias=True)
    return fn.flip(images, horizontal=fn.random.coin_flip())


def main(work, exported, images):
    files, indexes = sorted(glob.glob(f"{exported}/*.tfrecord")), sorted(glob.glob(f"{exported}/**/*.idx", recursive=True))
    built = pipeline(work, files, indexes)
    built.build()

    def epoch():
        for _ in range(images // 256):
            yield built.run()[0].as_array()

    measure("DALI (CPU)", dali.__version__, epoch)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
