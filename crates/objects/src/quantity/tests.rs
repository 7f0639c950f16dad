//! Quantities against the rules of upstream's type: what is read, rounded, capped and printed.

use proptest::prelude::*;

use super::{Format, Quantity, QuantityError};

fn q(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A text, what it prints, its whole units and its thousandths (both rounded up).
type Case = (&'static str, &'static str, i64, i64);

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Zero in every spelling.
    ("0", "0", 0, 0),
    ("00", "0", 0, 0),
    ("-0", "0", 0, 0),
    ("0.000", "0", 0, 0),
    ("0Gi", "0", 0, 0),
    ("0e30", "0", 0, 0),
    // Plain numbers; three zeros become a suffix.
    ("1", "1", 1, 1000),
    ("+7", "7", 7, 7000),
    ("-7", "-7", -7, -7000),
    ("007", "7", 7, 7000),
    ("100", "100", 100, 100_000),
    ("1000", "1k", 1000, 1_000_000),
    ("25000", "25k", 25_000, 25_000_000),
    ("1200000", "1200k", 1_200_000, 1_200_000_000),
    ("1.", "1", 1, 1000),
    (".5", "500m", 1, 500),
    ("1.5", "1500m", 2, 1500),
    ("2.10", "2100m", 3, 2100),
    ("0.25", "250m", 1, 250),
    ("40.00", "40", 40, 40_000),
    // Decimal suffixes.
    ("1n", "1n", 1, 1),
    ("7u", "7u", 1, 1),
    ("1500u", "1500u", 1, 2),
    ("1m", "1m", 1, 1),
    ("250m", "250m", 1, 250),
    ("1500m", "1500m", 2, 1500),
    ("2000m", "2", 2, 2000),
    ("0.5m", "500u", 1, 1),
    ("0.3m", "300u", 1, 1),
    ("3k", "3k", 3000, 3_000_000),
    ("1.5M", "1500k", 1_500_000, 1_500_000_000),
    ("12G", "12G", 12_000_000_000, 12_000_000_000_000),
    ("0.001T", "1G", 1_000_000_000, 1_000_000_000_000),
    ("9P", "9P", 9_000_000_000_000_000, 9_000_000_000_000_000_000),
    ("1E", "1E", 1_000_000_000_000_000_000, 0),
    // Exponents keep their family; a lower or an upper e.
    ("1e3", "1e3", 1000, 1_000_000),
    ("1E3", "1e3", 1000, 1_000_000),
    ("5e0", "5", 5, 5000),
    ("12e2", "1200", 1200, 1_200_000),
    ("1e4", "10e3", 10_000, 10_000_000),
    ("1e-3", "1e-3", 1, 1),
    ("1.5e+2", "150", 150, 150_000),
    ("2e-6", "2e-6", 1, 1),
    // Finer than nano is rounded up to nano, away from zero.
    ("1.1n", "2n", 1, 1),
    ("0.1n", "1n", 1, 1),
    ("0.0000000001", "1n", 1, 1),
    ("1.0000000001", "1000000001n", 2, 1001),
    ("1e-1000", "1e-9", 1, 1),
    ("-0.1n", "-1n", -1, -1),
    // Binary suffixes; below 1024, or with a fraction, they print as decimals.
    ("1Ki", "1Ki", 1024, 1_024_000),
    ("1024", "1024", 1024, 1_024_000),
    ("1024Mi", "1Gi", 1 << 30, 1_073_741_824_000),
    ("1000Mi", "1000Mi", 1_048_576_000, 1_048_576_000_000),
    ("1536Mi", "1536Mi", 1_610_612_736, 1_610_612_736_000),
    ("0.5Mi", "512Ki", 524_288, 524_288_000),
    ("1.5Gi", "1536Mi", 1_610_612_736, 1_610_612_736_000),
    ("0.5Ki", "512", 512, 512_000),
    ("0.1Ki", "102400m", 103, 102_400),
    ("0.0001Ki", "102400u", 1, 103),
    ("80Gi", "80Gi", 85_899_345_920, 85_899_345_920_000),
    ("40960Mi", "40Gi", 42_949_672_960, 42_949_672_960_000),
    ("81559Mi", "81559Mi", 85_520_809_984, 85_520_809_984_000),
    ("2Ti", "2Ti", 1 << 41, 2_199_023_255_552_000),
    // The cap of the binary family, and the thousandths that wrap.
    ("7Ei", "7Ei", 7 << 60, i64::MIN),
    ("8Ei", "9223372036854775807", i64::MAX, -1000),
    ("9Ei", "9223372036854775807", i64::MAX, -1000),
    ("100000000000000000000000000000000000000000Ki", "9223372036854775807", i64::MAX, -1000),
    // Decimals beyond 64 bits: 0 in upstream's fast form, the low bits otherwise.
    ("1e19", "10e18", 0, 0),
    ("100E", "100E", 0, 0),
    ("1000E", "1000E", 0, 0),
    ("9223372036854775807", "9223372036854775807", i64::MAX, -1000),
    ("9223372036854775808", "9223372036854775808", i64::MIN, 0),
    ("150097534227404900e3", "150097534227404900e3", 2_523_581_637_728_487_072, -3_622_300_369_721_499_392),
    // Upstream forgives short texts without digits.
    ("+", "0", 0, 0),
    (".", "0", 0, 0),
    ("Gi", "0", 0, 0),
];

#[test]
fn texts_are_read_rounded_and_printed_as_upstream_does() {
    for (text, canonical, value, milli) in CASES {
        let quantity = q(text);
        assert_eq!(quantity.to_string(), *canonical, "text of {text}");
        assert_eq!(quantity.value_ceil(), *value, "value of {text}");
        assert_eq!(quantity.milli_ceil(), *milli, "thousandths of {text}");
    }
}

#[test]
fn what_is_no_quantity_is_refused_with_the_ground() {
    let shape = ["1 Gi", "0x1", "1.5.2", "1e5.5", "1Ki2x", "Ei", ".Ei", "١", "1\n", "ten"];
    for text in shape {
        assert_eq!(text.parse::<Quantity>(), Err(QuantityError::Shape(text.into())), "{text}");
    }
    let suffixes = [
        ("1e", "e"),
        ("--1", "-1"),
        ("1kk", "kk"),
        ("5i", "i"),
        ("1K", "K"),
        ("2gi", ""),
        ("1Ki2", "Ki2"),
        ("1m-", "m-"),
    ];
    for (text, suffix) in suffixes {
        let error = text.parse::<Quantity>().unwrap_err();
        if suffix.is_empty() {
            assert!(matches!(error, QuantityError::Shape(_)), "{text}: {error:?}");
        } else {
            assert_eq!(error, QuantityError::Suffix(text.into(), suffix.into()), "{text}");
        }
    }
    assert_eq!("".parse::<Quantity>(), Err(QuantityError::Empty));
    for text in ["2e38", "1e1000", "1e99999999999999999", "-2e38"] {
        let error = text.parse::<Quantity>().unwrap_err();
        let known = matches!(error, QuantityError::TooLarge(_) | QuantityError::Suffix(..));
        assert!(known, "{text}: {error:?}");
    }
    let long = "9".repeat(1 << 20);
    let message = long.parse::<Quantity>().unwrap_err().to_string();
    assert!(message.len() < 300, "a message stays short: {}", message.len());
}

#[test]
fn sums_are_exact_and_rounded_once() {
    assert_eq!(q("0.3m").checked_add(&q("0.3m")).unwrap().milli_ceil(), 1);
    assert_eq!(q("1500m").checked_add(&q("1500m")).unwrap().value_ceil(), 3);
    assert_eq!(q("1000E").checked_add(&q("1n")).unwrap(), q("1000000000000000000000.000000001"));
    assert_eq!(q("1e38").checked_add(&q("1e38")), None);
    assert_eq!(q("1e38").checked_add(&q("1n")), None);
    assert_eq!(q("2").checked_sub(&q("500m")).unwrap().to_string(), "1500m");
}

#[test]
fn a_sum_takes_the_format_of_the_first_that_is_not_zero() {
    let text = |a: &str, b: &str| q(a).checked_add(&q(b)).unwrap().to_string();
    assert_eq!(text("1Gi", "1073741824"), "2Gi");
    assert_eq!(text("1073741824", "1Gi"), "2147483648");
    assert_eq!(text("0", "2Gi"), "2Gi");
    assert_eq!(text("1e3", "1k"), "2e3");
    assert_eq!(q("1Gi").with_format(Format::DecimalSI).to_string(), "1073741824");
}

#[test]
fn order_is_that_of_the_numbers() {
    let ascending =
        ["-1e30", "-1", "-1n", "0", "1n", "999m", "1", "1001m", "24Gi", "40Gi", "81559Mi", "1e30"];
    for (index, less) in ascending.iter().enumerate() {
        for (other, greater) in ascending.iter().enumerate() {
            assert_eq!(q(less).cmp(&q(greater)), index.cmp(&other), "{less} and {greater}");
        }
    }
    assert_eq!(q("24Gi"), q("24576Mi"));
    assert_eq!(q("1"), q("1000m"));
    assert_eq!(q("-7").sign(), -1);
    assert_eq!(q("0m").sign(), 0);
}

#[test]
fn a_whole_number_is_one_that_is_written_so() {
    assert_eq!(q("3k").as_i64(), Some(3000));
    assert_eq!(q("1Gi").as_i64(), Some(1 << 30));
    assert_eq!(q("1.0").as_i64(), None);
    assert_eq!(q("1000m").as_i64(), None);
    assert_eq!(q("1e19").as_i64(), None);
    assert_eq!(q("9Ei").as_i64(), None);
    assert!((q("1.5Gi").as_f64() - 1_610_612_736.0).abs() < 1.0);
    assert!((q("250m").as_f64() - 0.25).abs() < 1e-12);
}

#[test]
fn strings_and_numbers_are_read() {
    let read = |json: &str| serde_json::from_str::<Quantity>(json).map(|q| q.to_string()).ok();
    assert_eq!(read("\" 16Gi \"").as_deref(), Some("16Gi"));
    assert_eq!(read("2").as_deref(), Some("2"));
    assert_eq!(read("-2").as_deref(), Some("-2"));
    assert_eq!(read("0.1").as_deref(), Some("100m"));
    assert_eq!(read("18446744073709551615").as_deref(), Some("18446744073709551615"));
    assert_eq!(read("1e300"), None);
    assert_eq!(read("true"), None);
    assert_eq!(serde_json::to_string(&q("0.5")).unwrap(), "\"500m\"");
}

prop_compose! {
    /// Any text that has the shape of a quantity.
    fn text()(
        sign in prop::sample::select(vec!["", "-"]),
        whole in 0_u64..=u64::MAX / 2,
        shift in 0_u32..60,
        fraction in prop::option::of(0_u32..1_000_000),
        suffix in prop::sample::select(vec![
            "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "e-6", "E9",
        ]),
    ) -> String {
        let fraction = fraction.map(|fraction| format!(".{fraction}")).unwrap_or_default();
        format!("{sign}{}{fraction}{suffix}", whole >> shift)
    }
}

proptest! {
    #[test]
    fn printing_and_reading_give_the_same_number(text in text()) {
        let quantity = q(&text);
        let printed = quantity.to_string();
        prop_assert_eq!(q(&printed), quantity, "{} printed {}", text, printed);
        prop_assert_eq!(q(&printed).to_string(), printed);
    }

    #[test]
    fn a_sum_less_one_part_is_the_other(a in text(), b in text()) {
        let (a, b) = (q(&a), q(&b));
        if let Some(sum) = a.checked_add(&b) {
            prop_assert_eq!(sum.checked_sub(&b), Some(a));
            prop_assert_eq!(b.checked_add(&a), Some(sum));
            prop_assert_eq!(sum.cmp(&a) as i32, b.sign());
        }
    }

    #[test]
    fn no_text_panics(text in ".{0,40}|[-+0-9.eEinumkKMGTP]{0,60}") {
        let quantity = text.parse::<Quantity>();
        if let Ok(quantity) = quantity {
            let _ = (quantity.to_string(), quantity.milli_ceil(), quantity.value_ceil(), quantity.as_f64());
            let _ = (quantity.checked_add(&quantity), quantity.checked_sub(&quantity), quantity.as_i64());
        }
    }
}
