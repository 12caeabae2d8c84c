//! The real data sets, from the published files: the paper's counts and the released code's, and every number as
//! another program prepares it.
//!
//! Where the published files are absent (see `common`), these tests say so and check nothing.

mod common;

use std::collections::BTreeMap;
use std::fs;

use common::data_folder;
use neuralcb_logs::datasets::{Classified, Preparation, RealData, Scale, Variant};

/// What `golden/make_datasets.py` writes about one preparation of one data set.
#[derive(serde::Deserialize)]
struct Golden {
    n_rows: usize,
    dim: usize,
    histogram: Vec<usize>,
    rows: Vec<usize>,
    labels: Vec<u32>,
    /// Σ_j cos(j)·x_ij of each of the rows.
    prints: Vec<f64>,
}

/// Loads every preparation of a data set that has golden values, and compares.
fn works_like_pandas_and_sklearn(data: RealData) -> Vec<Classified> {
    let Some(folder) = data_folder() else { return Vec::new() };
    let golden: BTreeMap<String, BTreeMap<String, Golden>> =
        serde_json::from_str(include_str!("golden/datasets.json")).unwrap();
    let load = |(name, golden): (&String, &Golden)| {
        let preparation = match name.as_str() {
            "paper" => Preparation::paper(data),
            "released-code" => Preparation::released_code(data),
            "paper, dot stripped" => Preparation { strip_income_dot: true, ..Preparation::paper(data) },
            other => panic!("an unknown preparation: {other}"),
        };
        let loaded = data.load(&preparation, &folder).unwrap();
        compare(&loaded, golden, name);
        loaded
    };
    golden[data.name()].iter().map(load).collect()
}

fn compare(data: &Classified, golden: &Golden, name: &str) {
    let counts = (data.n_rows(), data.dim, data.n_classes, data.class_names.len(), data.x.len());
    let classes = golden.histogram.len();
    assert_eq!(counts, (golden.n_rows, golden.dim, classes, classes, golden.n_rows * golden.dim), "{name}");
    assert_eq!(data.histogram(), golden.histogram, "{name}");
    assert!(data.x.iter().all(|v| v.is_finite()), "{name}");
    for ((&i, &label), &print) in golden.rows.iter().zip(&golden.labels).zip(&golden.prints) {
        assert_eq!(data.labels[i], label, "{name}, row {i}");
        let row: Vec<f64> = data.row(i).iter().map(|v| f64::from(*v)).collect();
        let got: f64 = row.iter().enumerate().map(|(j, v)| (j as f64).cos() * v).sum();
        // Every stored number is the f64 one within half a step of f32, standardised and then divided by its row's
        // norm.
        let tolerance = f64::from(f32::EPSILON) * row.iter().map(|v| v.abs()).sum::<f64>();
        assert!((got - print).abs() <= tolerance, "{name}, row {i}: {got} instead of {print}");
    }
}

#[test]
fn mushroom_works_like_pandas_and_sklearn() {
    let [paper, released] = &works_like_pandas_and_sklearn(RealData::Mushroom)[..] else { return };
    assert_eq!((paper.n_rows(), paper.dim, paper.histogram()), (8_124, 117, vec![4_208, 3_916]));
    // One value of each of the 22 attributes.
    assert!((0..released.n_rows()).all(|i| released.row(i).iter().sum::<f32>() == 22.0));
    assert!(released.x.iter().all(|v| *v == 0.0 || *v == 1.0));
}

#[test]
fn statlog_works_like_pandas_and_sklearn() {
    let [paper, released] = &works_like_pandas_and_sklearn(RealData::Statlog)[..] else { return };
    assert_eq!((paper.n_rows(), paper.dim, released.dim), (43_500, 9, 10));
    assert_eq!(paper.histogram(), [34_108, 37, 132, 6_748, 2_458, 6, 11]);
    // The defect: the tenth column is the label of the row at the other end.
    let n = released.n_rows();
    let label_of = |i: usize| released.row(i)[9];
    let first = (0..n).find(|&i| released.labels[i] == 0).unwrap();
    let elsewhere = (0..n).filter(|&i| released.labels[i] == 0 && label_of(n - 1 - i) != label_of(n - 1 - first));
    assert_eq!(elsewhere.count(), 0);
    assert!((0..n).any(|i| released.labels[i] == 0 && label_of(i) != label_of(n - 1 - first)));
}

#[test]
fn adult_works_like_pandas_and_sklearn() {
    let [paper, stripped, released] = &works_like_pandas_and_sklearn(RealData::Adult)[..] else { return };
    assert_eq!((paper.n_rows(), paper.dim, paper.n_classes), (45_222, 94, 14));
    assert_eq!((stripped.n_rows(), stripped.dim), (45_222, 92));
    assert_eq!((released.n_rows(), released.dim), (30_162, 92));
}

#[test]
fn mnist_works_like_numpy_and_sklearn() {
    let [paper, released] = &works_like_pandas_and_sklearn(RealData::Mnist)[..] else { return };
    for data in [paper, released] {
        assert_eq!((data.n_rows(), data.dim, data.n_classes, data.test_from), (70_000, 784, 10, Some(60_000)));
    }
}

#[test]
fn the_papers_rows_have_length_one() {
    let Some(folder) = data_folder() else { return };
    for data in [RealData::Mushroom, RealData::Statlog, RealData::Adult] {
        let loaded = data.load(&Preparation::paper(data), &folder).unwrap();
        for i in 0..loaded.n_rows() {
            let norm = loaded.row(i).iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            assert!((norm - 1.0).abs() < f64::from(f32::EPSILON), "{data}, row {i}: {norm}");
        }
    }
}

#[test]
fn raw_pixels_are_the_files_bytes() {
    let Some(folder) = data_folder() else { return };
    let raw = RealData::Mnist.load(&Preparation { scale: Scale::Raw, ..Preparation::default() }, &folder).unwrap();
    assert!(raw.x.iter().all(|v| (0.0..=255.0).contains(v) && v.fract() == 0.0));
    // The sum over the first image, a five.
    assert_eq!((raw.labels[0], raw.row(0).iter().sum::<f32>()), (5, 27_525.0));
}

#[test]
fn a_missing_file_is_named_with_the_cure() {
    let cache = tempfile::tempdir().unwrap();
    for &data in RealData::ALL {
        let error = data.load(&Preparation::default(), cache.path()).unwrap_err().to_string();
        let (name, file, folder) = (data.name(), data.files()[0].path, cache.path().display());
        assert_eq!(
            error,
            format!(
                "data set `{name}` is not here: file `{file}` is missing in `{folder}`; run `neuralcb data fetch \
                 {name}` (or with `--from DIR`)"
            )
        );
    }
}

#[test]
fn a_file_that_lost_lines_is_not_the_data_set() {
    let Some(folder) = data_folder() else { return };
    let cache = tempfile::tempdir().unwrap();
    let name = RealData::Statlog.files()[0].path;
    let text = fs::read_to_string(folder.join(name)).unwrap();
    fs::create_dir(cache.path().join("shuttle")).unwrap();
    let kept: String = text.split_inclusive('\n').take(40_000).collect();
    fs::write(cache.path().join(name), kept).unwrap();
    let error = RealData::Statlog.load(&Preparation::default(), cache.path()).unwrap_err().to_string();
    assert!(error.contains("must have 43500 rows, got 40000"), "{error}");
    assert!(error.contains("neuralcb data fetch statlog"), "{error}");
}

#[test]
fn names_are_read_back_and_stand_in_files() {
    for &data in RealData::ALL {
        assert_eq!(RealData::parse(data.name()), Some(data));
        assert_eq!(serde_json::to_string(&data).unwrap(), format!("\"{data}\""));
    }
    assert_eq!((RealData::parse("MNIST"), RealData::parse("cifar")), (Some(RealData::Mnist), None));
    let read: Preparation = serde_json::from_str(r#"{"variant":"released-code","scale":"standardised"}"#).unwrap();
    let want = Preparation { variant: Variant::ReleasedCode, scale: Scale::Standardised, ..Preparation::default() };
    assert_eq!(read, want);
    assert!(serde_json::from_str::<Preparation>(r#"{"scales":"raw"}"#).is_err());
}
