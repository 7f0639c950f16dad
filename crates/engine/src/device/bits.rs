//! Sets of small numbers as words of bits.

/// A set of numbers below a bound that the maker knows.
pub(super) type Mask = Vec<u64>;

/// Words that hold `bits` bits.
pub(super) fn words(bits: usize) -> usize {
    bits.div_ceil(64)
}

/// Whether bit `at` is set; what lies beyond the words is not.
pub(super) fn has(mask: &[u64], at: usize) -> bool {
    mask.get(at / 64).is_some_and(|w| w >> (at % 64) & 1 == 1)
}

/// Sets bit `at`.
pub(super) fn set(mask: &mut [u64], at: usize) {
    mask[at / 64] |= 1 << (at % 64);
}

/// Clears bit `at`.
pub(super) fn clear(mask: &mut [u64], at: usize) {
    mask[at / 64] &= !(1 << (at % 64));
}

/// How many bits are set.
pub(super) fn count(mask: &[u64]) -> usize {
    mask.iter().map(|w| w.count_ones() as usize).sum()
}

/// How many bits are set in both.
pub(super) fn count_both(a: &[u64], b: &[u64]) -> usize {
    a.iter().zip(b).map(|(x, y)| (x & y).count_ones() as usize).sum()
}

/// How many bits are set from `from` on.
pub(super) fn count_from(mask: &[u64], from: usize) -> usize {
    let Some(first) = mask.get(from / 64) else { return 0 };
    (first >> (from % 64)).count_ones() as usize + count(&mask[from / 64 + 1..])
}

/// The first bit set at or after `from`.
pub(super) fn next(mask: &[u64], from: usize) -> Option<usize> {
    let start = from / 64;
    let first = mask.get(start)? & (u64::MAX << (from % 64));
    let later = mask.iter().copied().enumerate().skip(start + 1);
    let (at, word) = std::iter::once((start, first)).chain(later).find(|(_, w)| *w != 0)?;
    Some(at * 64 + word.trailing_zeros() as usize)
}

/// The bits set, ascending.
pub(super) fn iter(mask: &[u64]) -> impl Iterator<Item = usize> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = next(mask, from)?;
        from = at + 1;
        Some(at)
    })
}
