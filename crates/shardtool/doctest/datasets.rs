// The dataset of the examples, `dataset`, in a temporary folder that becomes the current one: twelve samples of two classes for training
// and five for validation. An expression, which the examples include.
{
    use shardtool::write::{Array, ArrayColumn, DType, Sample, Value};
    use shardtool::{ArrayDtype, Writer, WriterOptions, image};

    /// Returns an uncompressed TIFF of 64 × 48 grey pixels.
    fn tiff(pixel: impl Fn(usize) -> u8) -> Vec<u8> {
        let entries: [(u16, u16, u32); 8] = [
            (256, 3, 64), (257, 3, 48), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 110), (278, 3, 48), (279, 4, 64 * 48),
        ];
        let mut file = [&b"II*\0"[..], &8u32.to_le_bytes(), &8u16.to_le_bytes()].concat();
        for (tag, kind, value) in entries {
            file.extend([&tag.to_le_bytes()[..], &kind.to_le_bytes(), &1u32.to_le_bytes(), &value.to_le_bytes()].concat());
        }
        file.extend(0u32.to_le_bytes());
        file.extend((0..64 * 48).map(pixel));
        file
    }

    let folder = tempfile::tempdir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    for (split, samples) in [("train", 12), ("validation", 5)] {
        let mut options = WriterOptions::new("dataset", split).with_classes(["cat", "dog"]).with_features([
            ("mask", DType::Bytes),
            ("depth", DType::Bytes),
            ("frames", DType::Bytes),
            ("image/object/bbox", DType::Float),
            ("image/object/class/label", DType::Int64),
            ("image/object/segmentation", DType::Bytes),
            ("caption", DType::Bytes),
            ("tags", DType::Int64),
            ("tokens", DType::Int64),
            ("length", DType::Int64),
            ("embedding", DType::Float),
        ]);
        options.arrays = vec![ArrayColumn::new("volume"), ArrayColumn::new("points")];
        let writer = Writer::open(&options).unwrap();
        for i in 0..samples {
            let pixels: Vec<u8> = (0..64 * 48 * 3).map(|at| (at % 64 + i * 10) as u8).collect();
            let jpeg = image::encode_jpeg(image::PixelsRef::new(64, 48, &pixels).unwrap(), 90).unwrap();
            let class = ["cat", "dog"][i % 2];
            let volume = Array { shape: vec![4, 4, 4], dtype: ArrayDtype::U8, data: vec![i as u8; 64].into() };
            let points: Vec<u8> = (0..(5 + i) * 3).flat_map(|at| (at as f32).to_le_bytes()).collect();
            let points = Array { shape: vec![5 + i as u64, 3], dtype: ArrayDtype::F32, data: points.into() };
            let key = format!("{class}/{i}.jpg");
            let sample = Sample::new(&key)
                .with_file(&jpeg)
                .with_label(class)
                .with_value("mask", Value::Bytes(vec![tiff(|at| (at % 64 / 32) as u8)]))
                .with_value("depth", Value::Bytes(vec![tiff(|at| (at / 64) as u8)]))
                .with_value("frames", Value::Bytes(vec![jpeg.clone(); 6]))
                .with_value("image/object/bbox", vec![0.25, 0.25, 0.75, 0.75])
                .with_value("image/object/class/label", vec![(i % 2) as i64])
                .with_value("image/object/segmentation", "[[16, 12, 48, 12, 48, 36, 16, 36]]")
                .with_value("caption", Value::Bytes(vec![format!("a {class}").into(), format!("photo {i}").into()]))
                .with_value("tags", vec![(i % 3) as i64])
                .with_value("tokens", (0..3 + i as i64).collect::<Vec<_>>())
                .with_value("length", 3 + i as i64)
                .with_value("embedding", vec![0.5; 4])
                .with_value("volume", Value::Array(volume))
                .with_value("points", Value::Array(points));
            writer.write(&sample).unwrap();
        }
        writer.finish().unwrap();
    }
    folder
}
