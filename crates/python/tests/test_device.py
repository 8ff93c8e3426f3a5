"""Batches on a device: with a stand-in driver, whose memory a consumer written in ctypes reads back, and without a driver."""

import os
import subprocess
import sys
import textwrap

import pytest
from conftest import BEGIN

import shardtool as st

@pytest.mark.parametrize("dtype, element, step", [("float32", "<f4", 2e-7), ("float16", "<f2", 4.9e-4)])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_device_delivers_the_hosts_pixels_normalised(on_device, dtype, element, step, layout):
    code = """
        dtype, element, step, layout = sys.argv[2:]
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        columns, options = ["image/width", "image/filename"], dict(order=st.Shuffled(5), remainder="mask")
        host = st.Loader(split, 16, [st.Image(STEPS), *columns], **options)
        normalised = st.Image(STEPS, dtype=dtype, layout=layout, mean=mean, std=std)
        device = st.Loader(split, 16, [normalised, *columns], device="cuda:0", **options)
        context = Context()
        stream = context.stream()
        steps = 0
        for theirs, ours in zip(host, device, strict=True):
            image = ours["image"]
            shape = (16, 3, 24, 24) if layout == "NCHW" else (16, 24, 24, 3)
            assert (image.shape, image.dtype, image.device, len(image)) == (shape, dtype, "cuda:0", 16), image
            values = read(image, context, stream).astype(np.float64)
            assert values.shape == shape
            values = values if layout == "NHWC" else values.transpose(0, 2, 3, 1)
            exact = (theirs["image"] / 255 - mean) / std
            assert (abs(values - exact) <= abs(exact) * float(step) + 4e-7).all()
            for name in ("label", "id", "valid", "image/width"):
                assert read(ours[name], context).tolist() == theirs[name].tolist() == ours["host"][name].tolist()
                assert ours["host"][name].dtype == theirs[name].dtype
            assert ours["image/filename"] == theirs["image/filename"]
            assert device.state_dict() == host.state_dict()
            steps += 1
        assert steps == len(device) == len(host) == 7
        stats = device.stats()["devices"]
        assert [s["device"] for s in stats] == ["cuda:0"] and stats[0]["device_bytes"] > 2 * 16 * 24 * 24 * 3, stats
        del image, ours, theirs
        # A second epoch, then a resume from a state.
        ids = lambda batch: np.asarray(batch["id"] if "host" not in batch else batch["host"]["id"]).tolist()
        assert [ids(b) for b in device] == [ids(b) for b in host]
        for loader in (host, device):
            for number, batch in enumerate(loader):
                if number == 2:
                    break
        del batch
        state = device.state_dict()
        assert state == host.state_dict() and state["p"] == 48
        rest = [ids(b) for _, b in zip(range(2), device)]
        device.load_state_dict(state)
        host.load_state_dict(state)
        assert [ids(b) for b in device] == [ids(b) for b in host]
        device.close()
        context.close(stream)
    """
    on_device(code, dtype, element, step, layout, STANDIN_DELAY_US="500")


def test_device_mixes_what_the_host_mixes(on_device):
    code = """
        batch_transform = [st.MixUp(0.8), st.CutMix(1.0), st.Mosaic(0.7)]
        options = dict(order=st.Shuffled(7), remainder="mask")
        two = st.Replica(local_replicas=2)
        host = st.Loader(split, 16, STEPS, batch_transform=batch_transform, replica=two, **options)
        # Values 0 to 255, which are whole numbers in f32.
        values = st.Image(STEPS, layout="NHWC", std=(1 / 255,) * 3)
        device = st.Loader(split, 16, values, batch_transform=batch_transform, device=["cuda:0", "cuda:1"], **options)
        context = Context()

        def same(theirs, ours):
            for theirs, ours in zip(theirs, ours, strict=True):
                assert (read(ours["image"], context) == theirs["image"]).all()
                assert theirs["label"].dtype == np.float32 and theirs["label"].shape == ours["label"].shape
                assert (read(ours["label"], context) == theirs["label"]).all()
                assert (ours["host"]["label"] == theirs["label"]).all()
                assert ours["host"]["id"].tolist() == theirs["id"].tolist()

        plain = st.Loader(split, 16, STEPS, replica=two, **options)
        changed = 0
        for theirs, ours, unmixed in zip(host, device, plain, strict=True):
            same(theirs, ours)
            changed += sum((a["image"] != b["image"]).any() for a, b in zip(theirs, unmixed))
        assert changed > 4, changed
        for loader in (host, device):
            for number, batch in enumerate(loader):
                if number == 1:
                    break
        del batch, theirs, ours
        state = device.state_dict()
        assert state == host.state_dict()
        for _, _ in zip(range(2), device):
            pass
        device.load_state_dict(state)
        host.load_state_dict(state)
        for theirs, ours in zip(host, device, strict=True):
            same(theirs, ours)
        del theirs, ours
        device.close()
        context.close()
    """
    on_device(code, mixed=True, STANDIN_DEVICES="2", STANDIN_DELAY_US="500")


@pytest.mark.parametrize("mosaic", [False, True])
def test_device_pastes_what_the_host_pastes(on_device, tmp_path, mosaic):
    """Objects are pasted by the workers, also if other batches are mixed on the device."""
    code = """
        path, mosaic = sys.argv[2], sys.argv[3] == "True"
        with st.Writer(path, "train") as writer:
            for n in range(40):
                pixels = np.random.default_rng(n).integers(0, 256, (40, 50, 3), np.uint8)
                shapes = [[2 + n % 7, 3, 30, 3, 20, 30], [25, 20, 48, 20, 48, 39, 25, 39]][: 1 + n % 2]
                objects = {"bbox": [[2, 3, 28, 27], [25, 20, 23, 19]][: 1 + n % 2], "category": [0, 1][: 1 + n % 2]}
                writer.write({"key": str(n), "image": pixels, "objects": {**objects, "segmentation": [[s] for s in shapes]}})
        split, steps = st.Dataset(path)["train"], [st.ResizeTo(24)]
        transforms = [st.CopyPaste(0.8), st.Mosaic()] if mosaic else st.CopyPaste(0.8)
        options = dict(order=st.Shuffled(7), remainder="mask")
        plain = st.Loader(split, 6, [st.Image(steps), st.Objects(masks=True)], **options)
        host = st.Loader(split, 6, [st.Image(steps), st.Objects(masks=True)], batch_transform=transforms, **options)
        image = st.Image(steps, layout="NHWC", std=(1 / 255,) * 3)
        device = st.Loader(split, 6, [image, st.Objects(masks=True)], batch_transform=transforms, device="cuda:0", **options)
        context = Context()
        changed = 0
        for theirs, ours, before in zip(host, device, plain, strict=True):
            assert (read(ours["image"], context) == theirs["image"]).all()
            for name in ("boxes", "labels", "masks"):
                assert (read(ours[name].values, context) == theirs[name].values).all()
                assert (read(ours[name].offsets, context) == theirs[name].offsets).all()
            changed += (theirs["image"] != before["image"]).any()
        assert changed > 4, changed
        del theirs, ours, before
        device.close()
        context.close()
    """
    on_device(code, tmp_path / "set", mosaic, mixed=mosaic)


@pytest.mark.parametrize("paste", [False, True])
def test_device_has_the_maps_that_the_host_composes(on_device, tmp_path, paste):
    """Pixels of the image are mixed on the device, and all that has values for them by the workers."""
    code = """
        import io
        from PIL import Image
        path, paste = sys.argv[2], sys.argv[3] == "True"
        def png(array):
            out = io.BytesIO()
            Image.fromarray(array).save(out, "PNG")
            return out.getvalue()
        features = dict.fromkeys(("semantic", "panoptic", "after", "depth"), "bytes") | {"flow": st.Array()}
        features |= {"image/object/bbox": "float", "image/object/class/label": "int64", "image/object/segmentation": "bytes"}
        with st.Writer(path, "train", labels=False, features=features) as writer:
            for n in range(40):
                random, size = np.random.default_rng(n), (40, 50)
                colours = lambda: random.integers(0, 256, (*size, 3), np.uint8)
                writer.write({
                    "key": str(n), "image": colours(), "semantic": png(colours()[..., 0].copy()), "panoptic": png(colours()), "after": png(colours()),
                    "depth": png(random.integers(0, 1 << 16, size, np.uint16)), "flow": random.normal(size=(*size, 2)).astype(np.float32),
                    "objects": {"bbox": [[2, 3, 28, 27]], "category": [0], "segmentation": [[[2 + n % 7, 3, 30, 3, 20, 30]]]},
                })
        split, steps = st.Dataset(path)["train"], [st.ResizeTo(24), st.HorizontalFlip()]
        maps = [st.Mask("semantic"), st.Mask("panoptic", dtype="int32"), st.FurtherImage("after", kind="color")]
        maps += [st.FurtherImage("depth", kind="values"), st.Arrays("flow", image_axes=(0, 1), kind="flow")]
        transforms = [st.Mosaic(0.8), st.CutMix()]
        if paste:
            maps, transforms = [*maps, st.Objects(masks=True)], st.CopyPaste(0.8)
        options = dict(order=st.Shuffled(7), remainder="mask")
        plain = st.Loader(split, 6, [st.Image(steps), *maps], **options)
        host = st.Loader(split, 6, [st.Image(steps), *maps], batch_transform=transforms, **options)
        image = st.Image(steps, layout="NHWC", std=(1 / 255,) * 3)
        device = st.Loader(split, 6, [image, *maps], batch_transform=transforms, device="cuda:0", **options)
        context = Context()
        names = ("image", "semantic", "panoptic", "after", "depth", "flow")
        changed = dict.fromkeys(names, 0)
        for theirs, ours, before in zip(host, device, plain, strict=True):
            for name in names:
                np.testing.assert_array_equal(read(ours[name], context), theirs[name], err_msg=name)
                changed[name] += (theirs[name] != before[name]).any()
        assert min(changed.values()) > 4, changed
        del theirs, ours, before
        device.close()
        context.close()
    """
    on_device(code, tmp_path / "set", paste, mixed=not paste)


def test_dlpack_export_follows_the_standard(on_device):
    code = """
        loader = st.Loader(split, 8, st.Image(STEPS, dtype="bfloat16"), device="cuda")
        batch = next(iter(loader))
        image = batch["image"]
        assert image.__dlpack_device__() == (2, 0)
        for arguments, versioned in [({}, False), ({"max_version": (0, 8)}, False), ({"max_version": (1, 0)}, True),
                                     ({"max_version": (1, 2), "stream": -1, "dl_device": (2, 0), "copy": False}, True)]:
            taken = Taken(image, **arguments)
            assert taken.versioned == versioned and taken.device == (2, 0)
            assert taken.shape == image.shape == (8, 3, 24, 24) and taken.strides == (1728, 576, 24, 1)
            assert taken.data % 256 == 0 and taken.type == "<u2"
            taken.release()
        # A capsule that is not consumed frees its tensor.
        for version in (None, (1, 0)):
            image.__dlpack__(max_version=version)
        for arguments, error in [({"stream": 0}, st.OptionError), ({"stream": -2}, st.OptionError),
                                 ({"copy": True}, BufferError), ({"dl_device": (1, 0)}, BufferError)]:
            try:
                image.__dlpack__(**arguments)
            except error:
                continue
            raise AssertionError(arguments)
        # The CUDA array interface, which has no bfloat16.
        assert not hasattr(image, "__cuda_array_interface__")
        context = Context()
        label = batch["label"].__cuda_array_interface__
        assert (label["version"], label["typestr"], label["shape"], label["stream"]) == (3, "<i8", (8,), 1)
        values = context.fetch(label["data"][0], label["shape"], label["typestr"], 1)
        assert values.tolist() == batch["host"]["label"].tolist()
        try:
            np.asarray(image)
        except TypeError as error:
            assert "DLPack" in str(error)
        assert repr(image) == "<bfloat16 [8, 3, 24, 24] on cuda:0>"
        context.close()
    """
    on_device(code)


def test_memory_is_not_reused_while_a_consumer_holds_it(on_device):
    """A consumer takes the images, drops the batch, and reads late, on a separate stream behind a slow copy."""
    code = """
        options = dict(order=st.Shuffled(1), remainder="drop")
        expected = [b["image"].copy() for _, b in zip(range(8), st.Loader(split, 8, STEPS, prefetch=4, **options))]
        values = st.Image(STEPS, layout="NHWC", std=(1 / 255,) * 3)
        loader = st.Loader(split, 8, values, device=st.Device("cuda:0", slots=3), **options)
        context = Context()
        stream = context.stream()
        held = []
        def check():
            taken, number = held.pop(0)
            values = context.fetch(taken.data, taken.shape, taken.type, stream)
            taken.release()
            assert (values == expected[number]).all(), number
        for number, batch in zip(range(8), loader):
            held.append((Taken(batch["image"], stream=stream), number))
            del batch
            if len(held) == 2:
                check()
        while held:
            check()
        loader.close()
        context.close(stream)
    """
    on_device(code, STANDIN_DELAY_US="3000")


def test_each_of_several_devices_is_a_replica(on_device):
    code = """
        options = dict(order=st.Sequential(seed=3))
        ranks = [st.Loader(split, 8, STEPS, replica=st.Replica(rank, 2), **options) for rank in range(2)]
        loader = st.Loader(split, 8, STEPS, device=["cuda:0", "cuda:1"], **options)
        contexts = [Context(0), Context(1)]
        shown, steps = [], 0
        for batches, *theirs in zip(loader, *ranks, strict=True):
            assert [b["image"].device for b in batches] == ["cuda:0", "cuda:1"]
            for ours, host in zip(batches, theirs, strict=True):
                assert ours["host"]["id"].tolist() == host["id"].tolist()
                shown += host["id"][host["valid"]].tolist()
            steps += 1
            assert loader.state_dict() == ranks[0].state_dict()
        assert sorted(shown) == list(range(len(split))) and steps == len(loader) == 7
        assert [s["device"] for s in loader.stats()["devices"]] == ["cuda:0", "cuda:1"]
        del batches, ours, theirs, host
        loader.close()
        for context in contexts:
            context.close()
    """
    on_device(code, STANDIN_DEVICES="2")


def test_holding_every_batch_raises_and_the_next_iteration_works(on_device):
    code = """
        import time
        device = st.Device("cuda", slots=2)
        loader = st.Loader(split, 8, STEPS, device=device, prefetch=st.Prefetch(starve_after=0.2))
        try:
            list(loader)
        except st.StarvedError as error:
            assert "holds all 2 batches" in str(error)
        else:
            raise AssertionError
        assert len(next(iter(loader))["image"]) == 8
        small = st.Loader(split, 8, STEPS, device=st.Device("cuda", memory_limit="10KiB"))
        try:
            next(iter(small))
        except st.BudgetError as error:
            assert "of a limit of 10240" in str(error)
        else:
            raise AssertionError
    """
    on_device(code)


def test_ctrl_c_interrupts_waiting(on_device):
    code = """
        import os, signal, threading, time
        device = st.Device("cuda", slots=2)
        loader = st.Loader(split, 8, STEPS, device=device, prefetch=st.Prefetch(starve_after=60))
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        held, began = [], time.monotonic()
        try:
            for batch in loader:
                held.append(batch)
        except KeyboardInterrupt:
            assert len(held) == 2 and time.monotonic() - began < 30
            assert loader.state_dict()["p"] == 16
        else:
            raise AssertionError
    """
    on_device(code)


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(0)", "batch = next(iter(loader))", "del loader"])
def test_interpreter_exits_cleanly(on_device, end):
    code = f"""
        loader = st.Loader(split, 8, STEPS, device="cuda:0")
        taken = []
        for batch in loader:
            taken.append(batch["image"].__dlpack__())
            break
        {end}
    """
    # The interpreter never frees objects that it still holds when it exits.
    on_device(code, clean=False)


def test_forked_child_gets_an_error(on_device):
    code = """
        import os, warnings
        warnings.simplefilter("ignore")
        loader = st.Loader(split, 8, STEPS, device="cuda:0")
        batch = next(iter(loader))
        child = os.fork()
        if child == 0:
            heard = 0
            for use in (lambda: next(iter(loader)), lambda: batch["image"].__dlpack__(), lambda: loader.state_dict()):
                try:
                    use()
                except RuntimeError as error:
                    heard += "forked child" in str(error)
            del batch, loader
            os._exit(0 if heard == 3 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert len(next(iter(loader))["image"]) == 8
    """
    on_device(code)


def test_pickled_loader_resumes(on_device):
    code = """
        import pickle
        loader = st.Loader(split, 8, st.Image(STEPS, dtype="float16"), device="cuda:0")
        batches = iter(loader)
        next(batches), next(batches)
        again = pickle.loads(pickle.dumps(loader))
        assert again.state_dict() == loader.state_dict() and "float16" in repr(again)
        assert next(iter(again))["host"]["id"].tolist() == next(batches)["host"]["id"].tolist()
    """
    on_device(code)


@pytest.mark.parametrize(
    "environment, message",
    [
        ({"STANDIN_DEVICES": "0"}, "finds no device"),
        ({"STANDIN_VERSION": "11080"}, "install driver 525 or newer"),
        ({"STANDIN_BUSY": "1"}, "another process has it"),
    ],
)
def test_unusable_device_raises_with_the_reason(on_device, environment, message):
    code = """
        try:
            st.Loader(split, 8, STEPS, device="cuda:0")
        except st.DeviceError as error:
            assert sys.argv[2] in str(error), error
        else:
            raise AssertionError
    """
    on_device(code, message, clean=False, **environment)


def test_missing_driver_raises(dataset, tmp_path):
    (tmp_path / "libcuda.so.1").write_text("no library")
    code = """
        try:
            st.Loader(split, 8, STEPS, device="cuda:0")
        except st.DeviceError as error:
            assert isinstance(error, RuntimeError) and str(error).startswith("no CUDA driver: "), error
        else:
            raise AssertionError
    """
    code = BEGIN.replace("from consumer import Context, Taken, read", "") + textwrap.dedent(code)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code, str(dataset)], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "options, message",
    [
        ({"device": "gpu"}, "names no device"),
        ({"device": "cuda:-1"}, "names no device"),
        ({"slots": 3}, "`device=st.Device"),
        ({"device": ["cuda:0", "cuda:1"], "replica": st.Replica(local_replicas=3)}, "each is one replica"),
        ({"device": []}, "at least one device"),
        ({"device": ["cpu", "cuda:0"]}, "or `cpu` alone"),
    ],
)
def test_invalid_options_are_rejected(train, options, message):
    with pytest.raises(st.OptionError, match=message):
        st.Loader(train, 8, [st.ResizeTo(8)], **options)


@pytest.mark.parametrize(
    "pixels, message",
    [
        ({"dtype": "int8"}, "`dtype`"),
        ({"layout": "CHWN"}, "`layout`"),
        ({"std": (1, 0, 1)}, "`std`"),
        ({"mean": (1, 0)}, "`mean` has 2 numbers"),
    ],
)
@pytest.mark.parametrize("device", [None, "cuda"])
def test_invalid_pixels_are_rejected(train, device, pixels, message):
    with pytest.raises(st.OptionError, match=message):
        st.Loader(train, 8, st.Image([st.ResizeTo(8)], **pixels), device=device)


@pytest.mark.parametrize("devices, message", [([], "at least one device"), (None, "`device` is None")])
def test_a_device_needs_a_name(devices, message):
    with pytest.raises(st.OptionError, match=message):
        st.Device(devices)


def test_device_requires_steps(train):
    with pytest.raises(st.OptionError, match="`device`: images as stored stay on the host: give the steps of the image"):
        st.Loader(train, 8, device="cuda")
