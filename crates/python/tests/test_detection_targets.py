"""The functions of docs/frameworks.md that convert batches to what detection libraries and image processors take, given to these.

torchvision and transformers are in the environment torch. Ultralytics (AGPL) and MMDetection are in none: `scripts/campaign
detectors` installs them into a folder that it removes, and runs this file.
"""

import importlib.util
import sys
from unittest import mock

import numpy as np
import pytest

import shardtool as st

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
if importlib.util.find_spec("mmdet"):
    # The wheel of mmcv without its compiled operations, which losses on a CPU do not call.
    sys.modules.setdefault("mmcv._ext", mock.MagicMock(__spec__=None))
import triangles  # noqa: E402
from triangles import CLASSES, NORMAL, POINTS, SAMPLES, SIZE, SQUEEZE, STD, loader_of, page, samples_of  # noqa: E402


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    return triangles.write(tmp_path_factory.mktemp("detection") / "set")


@pytest.fixture(autouse=True)
def one_thread():
    """Computes with one thread: other tests run meanwhile."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def assert_learns(model, loss_of, batches, lr, epochs=8):
    """Trains, and asserts that the loss falls by a tenth at least. Every model reaches 0.73 of it or less."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    losses = []
    for _ in range(epochs):
        for batch in batches:
            loss = loss_of(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    steps = len(batches)
    assert np.isfinite(losses).all() and np.mean(losses[-steps:]) < 0.9 * np.mean(losses[:steps]), losses


@pytest.mark.parametrize("crowds", [False, True])
def test_targets_of_torchvision(split, crowds):
    image = st.Image(SQUEEZE, dtype="float32")
    compared = 0
    for batch in loader_of(split, image, masks=True, keypoints="image/object/keypoints"):
        for sample, target in zip(samples_of(batch), page.torchvision_targets(batch, crowds), strict=True):
            assert target["image_id"] == sample.id
            np.testing.assert_allclose(target["boxes"], sample.squeezed(crowds), atol=1e-4)
            assert target["labels"].tolist() == [1 + each for each in sample.classes(crowds)]
            assert target["iscrowd"].tolist() == [each["iscrowd"] for each in sample.kept(crowds)]
            count = len(sample.kept(crowds))
            assert target["masks"].shape == (count, SIZE, SIZE) and target["masks"].dtype == torch.uint8
            # A triangle is half of its box, to within the pixels of its sides.
            half = (target["boxes"][:, 2:] - target["boxes"][:, :2]).prod(1) / 2
            np.testing.assert_allclose(target["area"], half, rtol=0.2)
            points = np.array([each["keypoints"] for each in sample.kept(crowds)]).reshape(count, POINTS, 3)
            scaled = points * [SIZE / sample.width, SIZE / sample.height, 1]
            np.testing.assert_allclose(target["keypoints"], scaled, atol=1e-4)
            compared += count
    assert compared == sum(len(sample.kept(crowds)) for sample in SAMPLES) > 24
    # Without masks, the area is that of the boxes.
    batch = next(iter(loader_of(split, image)))
    for target in page.torchvision_targets(batch):
        sides = target["boxes"][:, 2:] - target["boxes"][:, :2]
        np.testing.assert_allclose(target["area"], sides.prod(1), rtol=1e-5)


def small_rcnn(name):
    """Returns a Faster, Mask or Keypoint R-CNN with two layers in front."""
    from torchvision.models import detection
    from torchvision.models.detection import faster_rcnn, keypoint_rcnn, mask_rcnn
    from torchvision.ops import MultiScaleRoIAlign

    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 16, 3, 4, 1), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3, 2, 1), torch.nn.ReLU()]
    backbone = torch.nn.Sequential(*layers)
    backbone.out_channels = 16
    anchors = detection.anchor_utils.AnchorGenerator(((12, 20, 32),), ((0.5, 1.0, 2.0),))
    options = {"num_classes": None, "rpn_anchor_generator": anchors, "min_size": SIZE, "max_size": SIZE}
    options |= {"rpn_post_nms_top_n_train": 40, "box_batch_size_per_image": 16}
    options |= {"box_roi_pool": MultiScaleRoIAlign(["0"], 7, 2), "box_head": faster_rcnn.TwoMLPHead(16 * 7 * 7, 32)}
    options["box_predictor"] = faster_rcnn.FastRCNNPredictor(32, 1 + len(CLASSES))
    pool = MultiScaleRoIAlign(["0"], 14, 2)
    if name == "MaskRCNN":
        options |= {"mask_roi_pool": pool, "mask_head": mask_rcnn.MaskRCNNHeads(16, (16,), 1)}
        options["mask_predictor"] = mask_rcnn.MaskRCNNPredictor(16, 16, 1 + len(CLASSES))
    if name == "KeypointRCNN":
        options |= {"keypoint_roi_pool": pool, "keypoint_head": keypoint_rcnn.KeypointRCNNHeads(16, (16,))}
        options["keypoint_predictor"] = keypoint_rcnn.KeypointRCNNPredictor(16, POINTS)
    return getattr(detection, name)(backbone, **options)


@pytest.mark.parametrize("name", ["FasterRCNN", "MaskRCNN", "KeypointRCNN"])
def test_detectors_of_torchvision_learn(split, name):
    more = {"FasterRCNN": {}, "MaskRCNN": {"masks": True}, "KeypointRCNN": {"keypoints": "image/object/keypoints"}}
    model = small_rcnn(name)

    def loss_of(batch):
        losses = model(list(batch["image"]), page.torchvision_targets(batch))
        assert len(losses) == (4 if name == "FasterRCNN" else 5)
        return torch.stack(list(losses.values())).sum()

    assert_learns(model, loss_of, loader_of(split, st.Image(SQUEEZE, dtype="float32"), **more[name]), 3e-3)


def annotation_of(sample):
    """Returns the annotations of a sample as a file of COCO has them."""
    common = {"image_id": sample.id, "area": 1.0}
    names = {"category": "category_id"}
    found = [{**common, **{names.get(name, name): value for name, value in each.items()}} for each in sample.objects]
    for each in found:
        del each["keypoints"]
    return {"image_id": sample.id, "annotations": found}


@pytest.mark.parametrize("kind", ["DetrImageProcessorPil", "DetrImageProcessor"])
def test_inputs_of_detr_are_those_of_its_image_processor(split, kind):
    transformers = pytest.importorskip("transformers")
    sizes = {"size": {"shortest_edge": 40, "longest_edge": 60}, "pad_size": {"height": SIZE, "width": SIZE}}
    processor = getattr(transformers, kind)(**sizes)
    image = st.Image([st.Resize(40, 60), st.FixedSizeCrop(SIZE, fill=page.PADDING)], **NORMAL)
    # One of 255 levels: torchvision rounds otherwise, and Pillow takes rows before columns in some sizes.
    allowed = 1.01 / 255 / min(STD)
    compared = other_sizes = 0
    for batch in loader_of(split, image):
        samples, ours = samples_of(batch), page.detr_inputs(batch)
        pictures, annotations = [each.image for each in samples], [annotation_of(each) for each in samples]
        theirs = processor(pictures, annotations, return_tensors="pt")
        for row, sample in enumerate(samples):
            shown, expected = ours["pixel_mask"][row].bool(), theirs["pixel_mask"][row].bool()
            boxes = theirs["labels"][row]
            assert ours["labels"][row]["class_labels"].tolist() == boxes["class_labels"].tolist() == sample.classes()
            if not torch.equal(shown, expected):
                # The processor rounds the length of the longer side, shardtool and torchvision cut it.
                sides = [(int(mask.any(1).sum()), int(mask.any(0).sum())) for mask in (shown, expected)]
                assert max(abs(a - b) for a, b in zip(*sides)) == 1
                other_sizes += 1
                continue
            assert 0.3 < shown.float().mean() < 0.9
            difference = ours["pixel_values"][row] - theirs["pixel_values"][row]
            assert difference.abs().amax(0)[shown].max() <= allowed
            torch.testing.assert_close(ours["labels"][row]["boxes"], boxes["boxes"], atol=1e-5, rtol=0)
            compared += len(boxes["boxes"])
    assert compared > 20 and other_sizes < 4


def detr():
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

    sizes = {"hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic", "embedding_size": 8}
    backbone = ResNetConfig(**sizes, out_features=["stage2"])
    layers = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "num_queries": 8, "encoder_ffn_dim": 32}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "decoder_ffn_dim": 32, "dropout": 0.0}
    return DetrForObjectDetection(DetrConfig(**layers, **heads, backbone_config=backbone, num_labels=len(CLASSES)))


def rt_detr():
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig

    sizes = {"hidden_sizes": [8, 8, 16, 16], "depths": [1] * 4, "layer_type": "basic", "embedding_size": 8}
    backbone = RTDetrResNetConfig(**sizes, out_features=["stage2", "stage3", "stage4"])
    channels = {"encoder_in_channels": [8, 16, 16], "decoder_in_channels": [32] * 3, "encoder_hidden_dim": 32}
    layers = {"d_model": 32, "decoder_layers": 1, "num_queries": 20, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    more = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "num_denoising": 10, "num_labels": len(CLASSES)}
    return RTDetrForObjectDetection(
        RTDetrConfig(backbone_config=backbone, **channels, **layers, **more)
    )


@pytest.mark.parametrize("make", [detr, rt_detr])
def test_detr_and_rt_detr_learn(split, make):
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = make()
    if make is detr:
        image = st.Image([st.Resize(40, 60), st.FixedSizeCrop(SIZE, fill=page.PADDING)], **NORMAL)
    else:
        image = st.Image(SQUEEZE, dtype="float32")
    batches = loader_of(split, image, collate_fn=page.detr_inputs)
    assert_learns(model, lambda inputs: model(**inputs).loss, batches, 3e-3)


def test_batches_of_ultralytics(split):
    seen = 0
    for batch in loader_of(split, st.Image(SQUEEZE, dtype="float32")):
        samples, found = samples_of(batch), page.ultralytics_batch(batch)
        rows = [row for row, sample in enumerate(samples) for _ in sample.kept()]
        np.testing.assert_array_equal(found["batch_idx"], np.float32(rows))
        np.testing.assert_array_equal(found["cls"][:, 0], np.float32([c for each in samples for c in each.classes()]))
        np.testing.assert_allclose(found["bboxes"], np.concatenate([s.fractions() for s in samples]), atol=1e-5)
        assert found["img"].min() >= 0 and 0.5 < found["img"].max() <= 1
        seen += len(rows)
    assert seen == sum(len(sample.kept()) for sample in SAMPLES)


def test_ultralytics_learns(split):
    pytest.importorskip("ultralytics", reason="ultralytics is not installed")
    from ultralytics.cfg import get_cfg
    from ultralytics.nn.tasks import DetectionModel

    torch.manual_seed(0)
    model = DetectionModel("yolov8n.yaml", nc=len(CLASSES), verbose=False)
    model.args = get_cfg()
    batches = loader_of(split, st.Image([st.ResizeTo(96)], dtype="float32"), collate_fn=page.ultralytics_batch)
    assert_learns(model, lambda batch: model.loss(batch)[0].sum(), batches, 1e-3)


def test_samples_of_mmdetection_are_learnt(split):
    pytest.importorskip("mmdet", reason="mmdet is not installed")
    import mmdet.models  # noqa: F401
    from mmdet.registry import MODELS
    from mmengine.registry import init_default_scope

    init_default_scope("mmdet")
    torch.manual_seed(0)
    scales = {"octave_base_scale": 2, "scales_per_octave": 3, "ratios": [0.5, 1, 2], "strides": [8, 16, 32]}
    head = {"type": "RetinaHead", "num_classes": len(CLASSES), "in_channels": 16, "feat_channels": 16}
    head |= {"stacked_convs": 1, "anchor_generator": {"type": "AnchorGenerator", **scales}}
    resnet = {"type": "ResNet", "depth": 18, "norm_cfg": {"type": "BN"}}
    neck = {"type": "FPN", "in_channels": [64, 128, 256, 512], "out_channels": 16, "start_level": 1, "num_outs": 3}
    assigner = {"type": "MaxIoUAssigner", "pos_iou_thr": 0.5, "neg_iou_thr": 0.4, "min_pos_iou": 0}
    training = {"assigner": assigner, "sampler": {"type": "PseudoSampler"}, "allowed_border": -1, "pos_weight": -1}
    model = MODELS.build({
        "type": "RetinaNet", "data_preprocessor": {"type": "DetDataPreprocessor"}, "backbone": resnet, "neck": neck,
        "bbox_head": head, "train_cfg": {**training, "debug": False},
    })  # fmt: skip
    batches = loader_of(split, st.Image(SQUEEZE, **NORMAL))
    for batch in batches:
        _, found = page.mmdet_inputs(batch)
        for sample, each in zip(samples_of(batch), found, strict=True):
            assert each.img_id == sample.id and len(each.ignored_instances) == len(sample.objects) - len(sample.kept())
            np.testing.assert_allclose(each.gt_instances.bboxes, sample.squeezed(), atol=1e-4)
            assert each.gt_instances.labels.tolist() == sample.classes()
    assert_learns(model, lambda batch: model.parse_losses(model.loss(*page.mmdet_inputs(batch)))[0], batches, 1e-4)


@pytest.mark.parametrize("backend", ["pil", "torchvision"])
@pytest.mark.parametrize("name", ["ViT", "CLIP"])
def test_images_are_those_of_image_processors(split, tmp_path, name, backend):
    """Each processor as `AutoImageProcessor` loads it: squeezed and bilinear, or cropped and bicubic."""
    transformers = pytest.importorskip("transformers")
    sizes = {"ViT": {"size": {"height": 40, "width": 48}}, "CLIP": {"size": {"shortest_edge": 36}, "crop_size": 32}}
    getattr(transformers, f"{name}ImageProcessor")(**sizes[name]).save_pretrained(tmp_path)
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path, backend=backend)
    assert type(processor).__name__ == f"{name}ImageProcessor" + ("Pil" if backend == "pil" else "")
    # Two of 255 levels: torchvision rounds otherwise, and Pillow takes rows before columns for some sizes.
    allowed = 2.01 / 255 / min(processor.image_std)
    for batch in loader_of(split, page.image_of(processor)):
        theirs = processor([sample.image for sample in samples_of(batch)], return_tensors="pt")["pixel_values"]
        assert theirs.shape == batch["image"].shape and theirs.std() > 0.1
        for sample, ours, expected in zip(samples_of(batch), batch["image"], theirs):
            long, short = max(sample.width, sample.height), min(sample.width, sample.height)
            if name == "CLIP" and (36 * long // short - 32) % 4 == 3:
                # The middle is half a pixel off. Shardtool and torchvision round to the even pixel, the processor down.
                axis = 1 if sample.height == long else 2
                ours, expected = ours.narrow(axis, 0, 31), expected.narrow(axis, 1, 31)
            assert (expected - ours).abs().max() <= allowed
