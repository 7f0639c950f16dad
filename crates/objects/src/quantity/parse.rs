//! The text of a quantity: a sign, digits with at most one point, and a suffix.

use std::str::FromStr;

use super::{Format, NANO, Quantity, QuantityError, scale_up};

/// Upstream's fast form takes texts of up to so many digits.
const FAST_DIGITS: usize = 18;

/// The cap of quantities in binary suffixes.
const BINARY_MAX: i128 = i64::MAX as i128;

/// The pieces of a text.
struct Pieces<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros.
    whole: &'a str,
    /// Digits behind the point.
    fraction: &'a str,
    suffix: &'a str,
    /// Whether any digit is written; upstream forgives a text without, where it is short.
    any_digit: bool,
}

/// What a suffix multiplies by.
enum Suffix {
    /// Ten to this power.
    Decimal(Format, i64),
    /// Two to this power.
    Binary(u32),
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Empty);
        }
        let pieces = split(text).ok_or_else(|| QuantityError::Shape(shorten(text)))?;
        let suffix = suffix(pieces.suffix)
            .ok_or_else(|| QuantityError::Suffix(shorten(text), shorten(pieces.suffix)))?;
        if let Some(quantity) = fast(&pieces, &suffix) {
            return quantity.within_limits().ok_or_else(|| QuantityError::TooLarge(shorten(text)));
        }
        if !pieces.any_digit {
            return Err(QuantityError::Shape(shorten(text)));
        }
        slow(&pieces, &suffix).ok_or_else(|| QuantityError::TooLarge(shorten(text)))
    }
}

/// A text short enough for a message.
fn shorten(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Splits a text; none if a suffix is followed by something else.
fn split(text: &str) -> Option<Pieces<'_>> {
    let (negative, rest) = match text.as_bytes() {
        [b'-', ..] => (true, text.get(1..)?),
        [b'+', ..] => (false, text.get(1..)?),
        _ => (false, text),
    };
    let whole_end = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = rest.split_at_checked(whole_end)?;
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => {
            let end = rest.bytes().take_while(u8::is_ascii_digit).count();
            rest.split_at_checked(end)?
        }
        None => ("", rest),
    };
    let letters = suffix.bytes().take_while(|byte| b"eEinumkKMGTP".contains(byte)).count();
    let exponent = suffix.get(letters..)?;
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let any_digit = !whole.is_empty() || !fraction.is_empty();
    let whole = whole.trim_start_matches('0');
    Some(Pieces { negative, whole, fraction, suffix, any_digit })
}

fn suffix(text: &str) -> Option<Suffix> {
    let decimal = |power| Some(Suffix::Decimal(Format::DecimalSI, power));
    match text {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => Some(Suffix::Binary(10)),
        "Mi" => Some(Suffix::Binary(20)),
        "Gi" => Some(Suffix::Binary(30)),
        "Ti" => Some(Suffix::Binary(40)),
        "Pi" => Some(Suffix::Binary(50)),
        "Ei" => Some(Suffix::Binary(60)),
        other => {
            let power = other.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some(Suffix::Decimal(Format::DecimalExponent, power))
        }
    }
}

/// Upstream's fast form, under upstream's own conditions: 64 bits and a scale of at least nano.
fn fast(pieces: &Pieces<'_>, suffix: &Suffix) -> Option<Quantity> {
    // Upstream counts a whole part of zero as one digit.
    let digits = pieces.whole.len().max(1) + pieces.fraction.len();
    let (format, scale, shift) = match suffix {
        Suffix::Decimal(format, power) => {
            let scale = power.checked_sub(i64::try_from(pieces.fraction.len()).ok()?)?;
            (digits <= FAST_DIGITS).then_some((*format, scale, 0))?
        }
        Suffix::Binary(power) => {
            // A power of 2^10 is worth about three digits.
            let room = 14_usize.checked_sub(*power as usize * 3 / 10)?;
            let fits = pieces.fraction.is_empty() && digits <= room;
            fits.then_some((Format::BinarySI, 0, *power))?
        }
    };
    if scale < i64::from(NANO) {
        return None;
    }
    let digits = pieces.whole.bytes().chain(pieces.fraction.bytes());
    let number = digits.fold(0_i64, |number, digit| number * 10 + i64::from(digit - b'0'));
    let number = number.checked_mul(1_i64.checked_shl(shift)?)?;
    let mantissa = i128::from(if pieces.negative { -number } else { number });
    // A scale beyond 127 is far beyond every limit, which the caller checks.
    let scale = i8::try_from(scale).unwrap_or(i8::MAX);
    Some(Quantity { mantissa, scale, wide: false, format })
}

/// Everything else: exact digits, rounded up to nano, capped if binary. None if it is too large.
fn slow(pieces: &Pieces<'_>, suffix: &Suffix) -> Option<Quantity> {
    let mut digits: Vec<u8> = pieces.whole.bytes().chain(pieces.fraction.bytes()).collect();
    for digit in &mut digits {
        *digit -= b'0';
    }
    let mut scale = -i64::try_from(pieces.fraction.len()).ok()?;
    let format = match suffix {
        Suffix::Decimal(format, power) => {
            scale = scale.saturating_add(*power);
            *format
        }
        Suffix::Binary(power) => {
            multiply(&mut digits, 1 << power);
            Format::BinarySI
        }
    };
    let magnitude = magnitude(digits, scale);
    let quantity = |mantissa: i128, scale, format| {
        let mantissa = if pieces.negative { -mantissa } else { mantissa };
        Quantity { mantissa, scale, wide: true, format }
    };
    let Some((mantissa, scale)) = magnitude else {
        let capped = format == Format::BinarySI;
        return capped.then(|| quantity(BINARY_MAX, 0, format));
    };
    if format != Format::BinarySI {
        return quantity(mantissa, scale, format).within_limits();
    }
    // A binary quantity has no positive scale but that of trailing zeros.
    let nano = scale_up(mantissa, scale.abs_diff(NANO));
    match nano {
        Some(nano) if nano < 1_000_000_000 => Some(quantity(mantissa, scale, Format::DecimalSI)),
        Some(nano) if nano <= BINARY_MAX * 1_000_000_000 => Some(quantity(mantissa, scale, format)),
        _ => Some(quantity(BINARY_MAX, 0, format)),
    }
}

/// Digits times ten to the scale as mantissa and scale, rounded up to nano. None if too large.
fn magnitude(mut digits: Vec<u8>, mut scale: i64) -> Option<(i128, i8)> {
    let mut up = false;
    while scale < i64::from(NANO) {
        match digits.pop() {
            Some(digit) => up |= digit != 0,
            // Nothing is left above nano: what is not zero is one nano.
            None => scale = i64::from(NANO) - 1,
        }
        scale += 1;
    }
    while digits.last() == Some(&0) && scale < 0 && !up {
        digits.pop();
        scale += 1;
    }
    let mut mantissa = 0_i128;
    for digit in digits {
        mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(digit))?;
    }
    mantissa = mantissa.checked_add(i128::from(up))?;
    if mantissa == 0 {
        return Some((0, 0));
    }
    Some((mantissa, i8::try_from(scale).ok()?))
}

/// Multiplies a number in decimal digits.
fn multiply(digits: &mut Vec<u8>, factor: u64) {
    let mut carry = 0_u128;
    for digit in digits.iter_mut().rev() {
        let product = u128::from(*digit) * u128::from(factor) + carry;
        // A remainder of ten fits.
        *digit = u8::try_from(product % 10).unwrap_or_default();
        carry = product / 10;
    }
    let mut front = Vec::new();
    while carry > 0 {
        front.push(u8::try_from(carry % 10).unwrap_or_default());
        carry /= 10;
    }
    digits.splice(0..0, front.into_iter().rev());
}
