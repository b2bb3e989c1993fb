//! The functions in `functions/`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use selvedge_faas::{Argument, Call, Engine, Failure, Limits, Outcome, Ran, Trap};
use sha2::{Digest as _, Sha256};

use crate::support::{failed, part, trapped, value};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("functions")
}

fn committed(name: &str) -> Vec<u8> {
    fs::read(folder().join(name).with_extension("wasm")).unwrap()
}

fn call(name: &str, export: &str, arguments: impl IntoIterator<Item = Argument>) -> Ran {
    let mut engine = Engine::new(Limits::new()).unwrap();
    let id = engine.insert(&committed(name)).unwrap();
    engine.run(&Call::new(id, export, arguments).unwrap())
}

fn returned(ran: &Ran) -> &[u8] {
    match &ran.outcome {
        Outcome::Value(value) => value,
        Outcome::Failed(failure) => panic!("failed: {failure}"),
    }
}

fn samples(of: &[i16]) -> Argument {
    Argument::Bytes(of.iter().flat_map(|it| it.to_le_bytes()).collect())
}

#[test]
fn samples_have_a_mean_a_median_and_outliers() {
    let of = [210, 214, -32_000, 212, 211, 209, 32_000, 213];
    let outcome = |export: &str, of: &[i16]| value(&call("samples", export, [samples(of)]));
    assert_eq!(outcome("mean", &of), "158.625");
    assert_eq!(outcome("median", &of), "212");
    assert_eq!(outcome("outliers", &of), "2");
    assert_eq!(outcome("mean", &[-3]), "-3.0");
    assert_eq!(outcome("median", &[-3]), "-3");
    assert_eq!(outcome("outliers", &[-3]), "0");
    let cleaned = call("samples", "cleaned", [samples(&of)]);
    let wanted = samples(&[210, 214, 212, 212, 211, 209, 212, 213]).to_bytes();
    assert_eq!(returned(&cleaned), wanted);
}

#[test]
fn samples_of_any_number_are_as_their_sorted_list_says() {
    let mut seed = 1_u32;
    for len in 1..80 {
        let of: Vec<i16> = (0..len)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 16) as i16
            })
            .collect();
        let middle = |mut of: Vec<i32>| {
            of.sort_unstable();
            of[of.len() / 2]
        };
        let median = middle(of.iter().map(|it| i32::from(*it)).collect());
        let far = |it: &i16| (i32::from(*it) - median).abs();
        let limit = 5 * middle(of.iter().map(far).collect());
        let outliers = of.iter().filter(|it| far(it) > limit).count();
        let mean = of.iter().map(|it| f64::from(*it)).sum::<f64>() / f64::from(len);
        let outcome = |export: &str| value(&call("samples", export, [samples(&of)]));
        assert_eq!(outcome("median"), median.to_string(), "{of:?}");
        assert_eq!(outcome("outliers"), outliers.to_string(), "{of:?}");
        assert_eq!(outcome("mean"), format!("{mean:?}"), "{of:?}");
    }
}

#[test]
fn no_samples_are_a_failure() {
    for argument in [samples(&[]), Argument::Bytes(vec![7])] {
        let ran = call("samples", "median", [argument]);
        assert_eq!(ran.outcome, trapped(Trap::Unreachable));
    }
    assert_eq!(
        call("samples", "variance", []).outcome,
        failed(Failure::NoExport)
    );
}

#[test]
fn sha_256_is_that_of_the_standard() {
    for len in [0, 1, 3, 55, 56, 63, 64, 65, 119, 120, 1_000] {
        let bytes: Vec<u8> = (0..len).map(|it| (it * 7) as u8).collect();
        let wanted = Sha256::digest(&bytes);
        let ran = call("sha256", "sha256", [Argument::Bytes(bytes)]);
        assert_eq!(returned(&ran), &wanted[..], "{len} bytes");
    }
    let ran = call("sha256", "sha256", [Argument::Bytes(b"abc".to_vec())]);
    let wanted = "hex:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(value(&ran), wanted);
}

#[test]
fn edges_of_an_image_are_where_it_changes() {
    // Two halves, and one brighter pixel.
    let (width, height) = (16_usize, 12_usize);
    let mut image: Vec<u8> = (0..width * height)
        .map(|at| if at % width < 8 { 10 } else { 40 })
        .collect();
    image[5 * width + 3] = 250;
    let at = |x: usize, y: usize| i32::from(image[y * width + x]);
    let mut wanted = vec![0_u8; width * height];
    for y in 1..height - 1 {
        for x in 1..width - 1 {
            let column = |x: usize| at(x, y - 1) + 2 * at(x, y) + at(x, y + 1);
            let row = |y: usize| at(x - 1, y) + 2 * at(x, y) + at(x + 1, y);
            let size = (column(x + 1) - column(x - 1)).abs() + (row(y + 1) - row(y - 1)).abs();
            wanted[y * width + x] = size.min(255) as u8;
        }
    }
    assert_eq!(wanted[3 * width + 7], 120);
    let arguments = |width: i32| [Argument::Bytes(image.clone()), Argument::I32(width)];
    assert_eq!(returned(&call("image", "sobel", arguments(16))), wanted);
    for width in [0, -16, 13] {
        let ran = call("image", "sobel", arguments(width));
        assert_eq!(ran.outcome, trapped(Trap::Unreachable), "{width}");
    }
}

#[test]
fn the_net_tells_what_a_window_does() {
    let window = |it: &dyn Fn(f64) -> f64| {
        let bytes = (0..16).map(|nth| (it(f64::from(nth)) as i8).cast_unsigned());
        [Argument::Bytes(bytes.collect())]
    };
    let classify = |it: &dyn Fn(f64) -> f64| value(&call("network", "classify", window(it)));
    for level in [-35.0, 0.0, 28.0] {
        assert_eq!(classify(&|_| level), "0");
        assert_eq!(classify(&|nth| level + (nth * 5.0) % 3.0), "0");
        assert_eq!(classify(&|nth| level + 3.0 * (nth - 7.5)), "1");
        assert_eq!(classify(&|nth| level - 2.5 * (nth - 7.5)), "1");
        assert_eq!(classify(&|nth| level + 30.0 * (nth * 1.3).sin()), "2");
        assert_eq!(classify(&|nth| level + 45.0 * (nth * 0.9 + 1.0).sin()), "2");
    }
    // The exact result of the net by hand, in whole numbers.
    let known = [45, 41, 41, 37, 33, 32, 31, 22, 23, 18, 19, 18, 12, 10, 9, 2];
    let ran = call("network", "scores", [Argument::Bytes(known.into())]);
    let scores: Vec<i32> = returned(&ran)
        .chunks(4)
        .map(|it| i32::from_le_bytes(it.try_into().unwrap()))
        .collect();
    assert_eq!(scores, [-1_690, 3_160, -1_883]);
    let short = call("network", "classify", [Argument::Bytes(vec![0; 15])]);
    assert_eq!(short.outcome, trapped(Trap::Unreachable));
}

#[test]
fn the_greatest_common_divisor_is_that_of_euclid() {
    let gcd = |a: i64, b: i64| value(&call("gcd", "gcd", [Argument::I64(a), Argument::I64(b)]));
    assert_eq!(gcd(1_071, 462), "21i64");
    assert_eq!(
        gcd(7_540_113_804_746_346_429, 4_660_046_610_375_530_309),
        "1i64"
    );
    assert_eq!(gcd(0, 5), "5i64");
    assert_eq!(gcd(5, 0), "5i64");
}

#[test]
fn committed_modules_are_small_and_what_their_sources_make() {
    for name in ["gcd", "image", "network", "samples", "sha256"] {
        assert!(committed(name).len() < 20_000, "{name}");
    }
    assert_eq!(
        wat::parse_file(folder().join("gcd.wat")).unwrap(),
        committed("gcd")
    );
    let Some(_) = part("node_modules/.bin/asc") else {
        return;
    };
    let to = env::temp_dir().join(format!("selvedge-functions-{}", std::process::id()));
    fs::create_dir_all(&to).unwrap();
    let built = Command::new(folder().join("build.sh"))
        .arg(&to)
        .status()
        .unwrap();
    assert!(built.success());
    for name in ["image", "network", "samples", "sha256"] {
        let made = fs::read(to.join(name).with_extension("wasm")).unwrap();
        assert_eq!(made, committed(name), "{name}: run functions/build.sh");
    }
    fs::remove_dir_all(&to).unwrap();
}
