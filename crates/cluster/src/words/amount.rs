//! Amounts as people read them: cpu in cores, bytes in Gi, everything else as it counts.
//!
//! Bytes are exact in the largest unit in which they are short, else rounded. Two amounts that
//! differ never print alike: a sentence that says "asks 30Gi, 30Gi free" would be worse than none.
//! Reading quantities is left to the objects' crate.

const BINARY: [(&str, u32); 6] =
    [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];

const NANO: i128 = 1_000_000_000;

/// A number of a unit below this is short enough to be read.
const DIGITS_MAX: i128 = 100_000;

/// Whether a resource is counted in bytes.
fn in_bytes(resource: &str) -> bool {
    let name = resource.rsplit('/').next().unwrap_or(resource);
    name == "memory" || name.ends_with("-storage") || name.starts_with("hugepages-")
}

/// Amounts of one resource of a node, each printed so that different amounts look different. `cpu`
/// comes in thousandths of a core, all else in whole units.
pub fn of_node(resource: &str, amounts: &[i64]) -> Vec<String> {
    let nanos: Vec<i128> = amounts
        .iter()
        .map(|amount| {
            let amount = i128::from(*amount);
            if resource == "cpu" { amount * NANO / 1000 } else { amount * NANO }
        })
        .collect();
    of(in_bytes(resource), &nanos)
}

/// Amounts of one capacity or counter of devices, in billionths of a unit. Whether it counts bytes
/// is told by its name, or else by an amount that no count of things reaches.
pub fn of_devices(name: &str, nanos: &[i128]) -> Vec<String> {
    let large = nanos.iter().any(|n| n.abs() >= (1 << 20) * NANO);
    of(in_bytes(name) || large, nanos)
}

fn of(bytes: bool, nanos: &[i128]) -> Vec<String> {
    if !bytes {
        return nanos.iter().map(|n| plain(*n)).collect();
    }
    let short: Vec<String> = nanos.iter().map(|n| of_bytes(*n)).collect();
    let clash = |at: usize| {
        (0..nanos.len()).any(|other| nanos[at] != nanos[other] && short[at] == short[other])
    };
    let print = |at: usize| if clash(at) { plain(nanos[at]) } else { short[at].clone() };
    (0..nanos.len()).map(print).collect()
}

/// Bytes in the largest unit in which two decimals and five digits tell all; where there is none,
/// in the largest unit, rounded to two decimals.
fn of_bytes(nanos: i128) -> String {
    let whole = nanos.abs() / NANO;
    let reached = || BINARY.iter().filter(|(_, shift)| whole >> shift > 0);
    let exact = reached().find(|(_, shift)| {
        let unit = NANO << shift;
        nanos.abs() / unit < DIGITS_MAX && (nanos.abs() % unit * 100) % unit == 0
    });
    match exact.or(reached().next()) {
        Some((suffix, shift)) => format!("{}{suffix}", hundredths(nanos, NANO << shift)),
        None => plain(nanos),
    }
}

/// `amount / unit`, rounded to two decimals, without trailing zeros.
fn hundredths(amount: i128, unit: i128) -> String {
    // A unit is at most 2^90: no overflow.
    let fraction = (amount.abs() % unit * 200 + unit) / (2 * unit);
    let rounded = (amount.abs() / unit) * 100 + fraction;
    plain(rounded * (NANO / 100) * amount.signum())
}

/// Billionths as a decimal number of the unit, all of them, without trailing zeros.
fn plain(nanos: i128) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let (whole, fraction) =
        (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    if fraction == 0 {
        return format!("{sign}{whole}");
    }
    let digits = format!("{fraction:09}");
    format!("{sign}{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_write_them() {
        assert_eq!(of_node("cpu", &[23_000, 22_500, 62_000]), ["23", "22.5", "62"]);
        assert_eq!(of_node("memory", &[24 << 30, 1 << 29]), ["24Gi", "512Mi"]);
        assert_eq!(of_node("memory", &[81_559 << 20, 2560 << 20]), ["81559Mi", "2.5Gi"]);
        assert_eq!(of_node("memory", &[131_900_908 << 10]), ["125.79Gi"]);
        assert_eq!(of_node("memory", &[(1 << 29) + 1, 1 << 30]), ["512Mi", "1Gi"]);
        assert_eq!(of_node("memory", &[(1 << 30) - 1, 100]), ["1024Mi", "100"]);
        assert_eq!(of_node("nvidia.com/gpu", &[4, 0, 8]), ["4", "0", "8"]);
        assert_eq!(of_node("hugepages-2Mi", &[4 << 20]), ["4Mi"]);
        assert_eq!(of_node("memory", &[-(3 << 30)]), ["-3Gi"]);
        assert_eq!(of_devices("memory", &[(24 << 30) * NANO]), ["24Gi"]);
        assert_eq!(of_devices("multiprocessors", &[14 * NANO]), ["14"]);
    }

    #[test]
    fn amounts_that_differ_look_different() {
        let (asked, free) = (30_i64 << 30, (30_i64 << 30) - 4096);
        let printed = of_node("memory", &[asked, free, 64 << 30]);
        assert_eq!(printed, ["32212254720", "32212250624", "64Gi"]);
        let printed = of_node("memory", &[i64::MAX, i64::MAX - 1]);
        assert_ne!(printed[0], printed[1]);
        let printed = of_node("memory", &[(1 << 29) + 1, 1 << 29]);
        assert_eq!(printed, ["536870913", "536870912"]);
        let halves = of_devices("memory", &[(24 << 30) * NANO + NANO / 2, (24 << 30) * NANO]);
        assert_eq!(halves, ["25769803776.5", "25769803776"]);
    }
}
