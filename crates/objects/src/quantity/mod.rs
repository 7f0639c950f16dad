//! `resource.Quantity`: a decimal number with a suffix family, exactly as Kubernetes reads, rounds,
//! compares, adds and prints it. What a resource's name means (millicores, bytes) is for others.
//!
//! Upstream keeps a quantity in one of two forms, and what its conversions to 64 bits do with a
//! value that does not fit depends on the form. Both are kept here as one number and one bit.

mod parse;
mod serde_impls;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;

/// The finest step that a quantity has: 10^-9.
const NANO: i8 = -9;

/// An exact amount. Equality and order are those of the number: `1` = `1000m`.
///
/// The whole part is below 2^127 (1.7e38) in size, the finest step is 10^-9.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    /// The value is `mantissa` × 10^`scale`.
    mantissa: i128,
    /// -9 to 38.
    scale: i8,
    /// Whether upstream would hold the value as a decimal of arbitrary size. If not, the mantissa
    /// fits 64 bits.
    wide: bool,
    /// How it is printed.
    format: Format,
}

/// The family of suffixes in which a quantity was written and is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// `n`, `u`, `m`, none, `k`, `M`, `G`, `T`, `P`, `E`.
    #[default]
    DecimalSI,
    /// `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`.
    BinarySI,
    /// `e3`, `e6`.
    DecimalExponent,
}

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Nothing is written.
    #[error("An empty text is not a quantity; write a number such as 1, 500m or 16Gi.")]
    Empty,
    /// The text is not a number with a suffix.
    #[error(
        "`{0}` is not a quantity; write a number and, without a space, a suffix, such as 500m, 1.5 \
         or 16Gi."
    )]
    Shape(String),
    /// The suffix does not exist.
    #[error(
        "`{0}` is not a quantity: its suffix `{1}` is none of n, u, m, k, M, G, T, P, E, Ki, Mi, \
         Gi, Ti, Pi, Ei and no exponent such as e3."
    )]
    Suffix(String, String),
    /// Kubernetes would take it, but it is beyond what is computed here.
    #[error(
        "`{0}` is too great or has too many digits: quantities up to 1.7e38 are computed exactly."
    )]
    TooLarge(String),
}

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self { mantissa: 0, scale: 0, wide: false, format: Format::DecimalSI };

    /// A whole number.
    #[must_use]
    pub const fn from_int(value: i64) -> Self {
        Self { mantissa: value as i128, scale: 0, wide: false, format: Format::DecimalSI }
    }

    /// A number of thousandths.
    #[must_use]
    pub const fn from_milli(milli: i64) -> Self {
        Self { mantissa: milli as i128, scale: -3, wide: false, format: Format::DecimalSI }
    }

    /// The same amount printed in another family of suffixes.
    #[must_use]
    pub const fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// The family of suffixes in which the amount is printed.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Whether the amount is zero.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// -1, 0 or 1.
    #[must_use]
    pub const fn sign(&self) -> i32 {
        self.mantissa.signum() as i32
    }

    /// Whether it is a whole number of units, however large.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let (mantissa, scale) = self.parts();
        // A power beyond 128 bits is more than any mantissa.
        let unit = 10_i128.checked_pow(scale.min(0).unsigned_abs());
        unit.map_or(mantissa == 0, |unit| mantissa % unit == 0)
    }

    /// Mantissa and decimal scale: the exact value is the first times ten to the second.
    #[must_use]
    pub const fn parts(&self) -> (i128, i32) {
        (self.mantissa, self.scale as i32)
    }

    /// The amount in whole units, rounded up (away from zero), as upstream's `Value()`: an amount
    /// beyond 64 bits gives 0, or its low 64 bits, by the form in which upstream holds it.
    #[must_use]
    pub fn value_ceil(&self) -> i64 {
        self.scaled_ceil(0)
    }

    /// The amount in thousandths, rounded up (away from zero), as upstream's `MilliValue()`; see
    /// [`Quantity::value_ceil`] for amounts beyond 64 bits.
    #[must_use]
    pub fn milli_ceil(&self) -> i64 {
        self.scaled_ceil(-3)
    }

    /// The amount as a whole number, as upstream's `AsInt64()`: none if it is written with decimals
    /// (even `1.0` or `1000m`) or beyond 64 bits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        if self.wide || self.scale < 0 {
            return None;
        }
        i64::try_from(scale_up(self.mantissa, self.scale.unsigned_abs())?).ok()
    }

    /// The nearest 64-bit float, as upstream's `AsApproximateFloat64()`.
    #[must_use]
    pub fn as_f64(&self) -> f64 {
        // Upstream multiplies mantissa and power, each rounded, so this does: in its wide form the
        // mantissa counts nano units.
        let scale = if self.wide { NANO } else { self.scale };
        let float = |text: String| text.parse().unwrap_or(f64::NAN);
        let mantissa: f64 = float(format!("{}e{}", self.mantissa, self.scale.abs_diff(scale)));
        mantissa * float(format!("1e{scale}"))
    }

    /// The sum, in this quantity's format (the other's if this one is zero). None if the sum is not
    /// exact within the limits of the type.
    #[must_use]
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        let format = if self.is_zero() { other.format } else { self.format };
        let either_wide = self.wide || other.wide;
        if other.is_zero() {
            return Some(Self { wide: either_wide, format, ..*self });
        }
        if self.is_zero() {
            return Some(Self { wide: either_wide, format, ..*other });
        }
        let scale = self.scale.min(other.scale);
        let left = scale_up(self.mantissa, self.scale.abs_diff(scale))?;
        let right = scale_up(other.mantissa, other.scale.abs_diff(scale))?;
        let mantissa = left.checked_add(right)?;
        let narrow = [left, right, mantissa].iter().all(|part| i64::try_from(*part).is_ok());
        Self { mantissa, scale, wide: either_wide || !narrow, format }.within_limits()
    }

    /// The difference, see [`Quantity::checked_add`].
    #[must_use]
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        self.checked_add(&Self { mantissa: other.mantissa.checked_neg()?, ..*other })
    }

    /// Itself, if its whole part is within 127 bits.
    fn within_limits(self) -> Option<Self> {
        if self.mantissa == 0 {
            return Some(Self { scale: self.scale.clamp(NANO, 0), ..self });
        }
        if self.scale > 0 {
            scale_up(self.mantissa, self.scale.unsigned_abs())?;
        }
        Some(self)
    }

    fn scaled_ceil(&self, target: i8) -> i64 {
        if self.scale >= target {
            let up = self.scale.abs_diff(target);
            let exact = scale_up(self.mantissa, up).and_then(|value| i64::try_from(value).ok());
            // Upstream's fast form returns the product of these powers without asking whether it
            // has overflowed, and goes by steps of ten for the others, which end in 0.
            let wraps = self.wide || matches!(up, 1 | 2 | 3 | 6 | 9);
            return exact.unwrap_or_else(|| if wraps { self.wrapped(up) } else { 0 });
        }
        // The difference is at most 9, so the power fits.
        let divisor = 10_i128.pow(u32::from(self.scale.abs_diff(target)));
        let (quotient, rest) = (self.mantissa / divisor, self.mantissa % divisor);
        low_64_bits(quotient + rest.signum())
    }

    /// The low 64 bits of the mantissa times a power of ten.
    fn wrapped(&self, up: u8) -> i64 {
        low_64_bits(self.mantissa.wrapping_mul(10_i128.wrapping_pow(u32::from(up))))
    }

    /// The amount as a whole number; none if a part below one is left.
    fn whole(&self) -> Option<i128> {
        if self.scale >= 0 {
            return scale_up(self.mantissa, self.scale.unsigned_abs());
        }
        let divisor = 10_i128.pow(u32::from(self.scale.unsigned_abs()));
        (self.mantissa % divisor == 0).then(|| self.mantissa / divisor)
    }
}

/// `mantissa` × 10^`power`, if it fits.
fn scale_up(mantissa: i128, power: u8) -> Option<i128> {
    if mantissa == 0 {
        return Some(0);
    }
    10_i128.checked_pow(u32::from(power)).and_then(|factor| mantissa.checked_mul(factor))
}

/// The two's complement low half, which is what upstream's conversion keeps.
#[expect(clippy::cast_possible_truncation, reason = "the loss is upstream's, and meant")]
const fn low_64_bits(value: i128) -> i64 {
    value as i64
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.scale == other.scale {
            return self.mantissa.cmp(&other.mantissa);
        }
        let scale = self.scale.min(other.scale);
        let left = scale_up(self.mantissa, self.scale.abs_diff(scale));
        let right = scale_up(other.mantissa, other.scale.abs_diff(scale));
        match (left, right) {
            (Some(left), Some(right)) => left.cmp(&right),
            // Only the one of greater scale can overflow; it is then the greater in size.
            (None, _) => self.mantissa.cmp(&0),
            (_, None) => 0.cmp(&other.mantissa),
        }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl fmt::Display for Quantity {
    /// The canonical form: the greatest suffix that needs no fraction, in the family in which the
    /// quantity was written. `BinarySI` is left where it would need a fraction or is below 1024.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.mantissa == 0 {
            return f.pad("0");
        }
        let text = match self.format {
            Format::BinarySI => self.binary_text(),
            Format::DecimalSI => None,
            Format::DecimalExponent => Some(self.decimal_text(false)),
        };
        f.pad(&text.unwrap_or_else(|| self.decimal_text(true)))
    }
}

impl Quantity {
    /// The text in binary suffixes; none if that would lose precision or is not worth it.
    fn binary_text(&self) -> Option<String> {
        const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let mut number = self.whole()?;
        if number.unsigned_abs() < 1024 {
            return None;
        }
        let mut suffix = 0;
        while number % 1024 == 0 && suffix + 1 < SUFFIXES.len() {
            number /= 1024;
            suffix += 1;
        }
        SUFFIXES.get(suffix).map(|suffix| format!("{number}{suffix}"))
    }

    /// The text with an exponent that is a multiple of three, as a suffix or as `e…`.
    fn decimal_text(&self, suffixed: bool) -> String {
        const SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        let (mut number, mut exponent) = (self.mantissa, i32::from(self.scale));
        while number % 10 == 0 {
            number /= 10;
            exponent += 1;
        }
        // Upstream prints 1000E as `1`; that is its defect 10^21, and no text of it is needed here.
        let last = if suffixed { 18 } else { i32::MAX };
        let printed = (exponent - exponent.rem_euclid(3)).min(last);
        let zeros = usize::try_from(exponent - printed).unwrap_or(0);
        let mut text = number.to_string();
        text.extend(std::iter::repeat_n('0', zeros));
        if suffixed {
            let index = usize::try_from(printed / 3 + 3).unwrap_or(3);
            text.push_str(SUFFIXES.get(index).unwrap_or(&""));
        } else if printed != 0 {
            text.push_str(&format!("e{printed}"));
        }
        text
    }
}
