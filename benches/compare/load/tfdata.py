"""tf.data over our shards: tfdata.py WORK DATASET"""

import glob
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402

from measure import measure  # noqa: E402

THREADS = 2
FEATURES = {"image/encoded": tf.io.FixedLenFeature([], tf.string)}


def crop_box(shape):
    """torchvision's RandomResizedCrop.get_params: y, x, height, width."""
    height, width = tf.cast(shape[0], tf.float32), tf.cast(shape[1], tf.float32)
    area = height * width * tf.random.uniform([10], 0.08, 1.0)
    ratio = tf.exp(tf.random.uniform([10], tf.math.log(3 / 4), tf.math.log(4 / 3)))
    w, h = tf.round(tf.sqrt(area * ratio)), tf.round(tf.sqrt(area / ratio))
    fits = (w > 0) & (w <= width) & (h > 0) & (h <= height)
    first = tf.argmax(tf.cast(fits, tf.int32))
    some = tf.reduce_any(fits)
    whole_w = tf.minimum(width, tf.round(height * 4 / 3))
    whole_h = tf.minimum(height, tf.round(width * 4 / 3))
    w, h = tf.where(some, w[first], whole_w), tf.where(some, h[first], whole_h)
    u = tf.random.uniform([2])
    y = tf.where(some, tf.floor(u[0] * (height - h + 1)), tf.floor((height - h) / 2))
    x = tf.where(some, tf.floor(u[1] * (width - w + 1)), tf.floor((width - w) / 2))
    return tf.cast(tf.stack([tf.minimum(y, height - h), tf.minimum(x, width - w), h, w]), tf.int32)


def centre_box(shape):
    """The pixels of Resize(256) and CenterCrop(224), before the resize."""
    side = tf.cast(tf.round(tf.cast(tf.minimum(shape[0], shape[1]), tf.float32) * 224 / 256), tf.int32)
    return tf.stack([(shape[0] - side) // 2, (shape[1] - side) // 2, side, side])


def train(record):
    image = cropped(record, crop_box)
    return tf.ensure_shape(tf.image.random_flip_left_right(image), [224, 224, 3])


def evaluate(record):
    return tf.ensure_shape(cropped(record, centre_box), [224, 224, 3])


def cropped(record, box_of):
    encoded = tf.io.parse_single_example(record, FEATURES)["image/encoded"]
    box = box_of(tf.image.extract_jpeg_shape(encoded))
    image = tf.image.decode_and_crop_jpeg(encoded, box, channels=3)
    return tf.cast(tf.image.resize(image, [224, 224]), tf.uint8)


def main(work, dataset):
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    options = tf.data.Options()
    options.threading.private_threadpool_size = THREADS
    files = sorted(glob.glob(f"{dataset}/train-*.tfrecord"))

    def epoch():
        data = tf.data.TFRecordDataset(files, num_parallel_reads=THREADS).with_options(options)
        if work == "train":
            data = data.shuffle(1024)
        step = {"train": train, "eval": evaluate}[work]
        data = data.map(step, num_parallel_calls=THREADS, deterministic=work == "eval").batch(256).prefetch(2)
        return data.as_numpy_iterator()

    measure("tf.data", tf.__version__, epoch)


main(sys.argv[1], sys.argv[2])
