//! The fuel of an evaluation: Kubernetes' cost units, and beside them the work that those units
//! do not see.
//!
//! An evaluation that costs more than [`COST_LIMIT`](crate::COST_LIMIT) is broken off, as upstream
//! does. Some operations cost one unit however large their operands are (joining lists, comparing
//! them, looking up a key): a few hundred bytes of expression could keep a machine busy for hours
//! without reaching that limit. So elements touched are counted as well, and a second, generous
//! limit breaks those off with the same error.

use crate::error::EvalErrorKind;

/// Making a list.
pub(crate) const LIST: u64 = 10;
/// Making a map.
pub(crate) const MAP: u64 = 30;

/// Elements, or stretches of 16 bytes of text, that may be touched in one evaluation.
const WORK_LIMIT: u64 = 1_000_000;

/// Bytes of the longest text that may be made. No two attributes joined come near it.
const TEXT_LIMIT: usize = 1 << 20;

/// What has been used of the fuel.
#[derive(Debug)]
pub(crate) struct Meter {
    cost: u64,
    limit: u64,
    work: u64,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Self {
        Meter { cost: 0, limit, work: 0 }
    }

    /// For computing constants, where only the work is limited.
    pub(crate) fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Adds to the cost.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalErrorKind> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit || self.exhausted() {
            return Err(EvalErrorKind::CostLimit);
        }
        Ok(())
    }

    /// Takes back what was charged too much.
    pub(crate) fn refund(&mut self, cost: u64) {
        self.cost = self.cost.saturating_sub(cost);
    }

    /// Notes that elements were touched; [`Self::charge`] fails once there were too many.
    pub(crate) fn work(&mut self, elements: usize) {
        self.work = self.work.saturating_add(elements as u64);
    }

    /// Whether the work is used up, so that a loop had better end.
    pub(crate) fn exhausted(&self) -> bool {
        self.work > WORK_LIMIT
    }

    /// Takes the work of making something of so many elements, before it is made.
    pub(crate) fn reserve(&mut self, elements: usize) -> Result<(), EvalErrorKind> {
        self.work(elements);
        if self.exhausted() { Err(EvalErrorKind::CostLimit) } else { Ok(()) }
    }

    /// [`Self::reserve_text`] for a text that grows by a part.
    pub(crate) fn reserve_text_growth(
        &mut self,
        before: usize,
        part: usize,
    ) -> Result<(), EvalErrorKind> {
        if before.saturating_add(part) > TEXT_LIMIT {
            return Err(EvalErrorKind::CostLimit);
        }
        self.reserve(part / 16)
    }

    /// [`Self::reserve`] for a text of so many bytes.
    pub(crate) fn reserve_text(&mut self, bytes: usize) -> Result<(), EvalErrorKind> {
        if bytes > TEXT_LIMIT {
            return Err(EvalErrorKind::CostLimit);
        }
        self.reserve(bytes / 16)
    }
}

/// Walking through a text: a tenth of its size, rounded up.
pub(crate) fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}

/// Applying a regular expression of `pattern` characters to a text of `text` characters.
pub(crate) fn regex(text: u64, pattern: u64) -> u64 {
    tenth(text + 1).saturating_mul(pattern.div_ceil(4))
}

/// Searching a text for another.
pub(crate) fn contains(text: u64, part: u64) -> u64 {
    tenth(text).saturating_mul(tenth(part))
}
