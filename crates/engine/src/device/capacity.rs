//! What one allocation of a device takes of its capacities (KEP-5075, consumable capacity).
//!
//! Amounts are in billionths of a unit. Rounding is that of `requestPolicy` without
//! `DRAFractionalCapacityRange`: steps are counted in whole units.

use crate::facts::{CapacityPolicy, Traits};
use crate::name::Name;

const UNIT: i128 = 1_000_000_000;

/// Why a device can never give what is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    /// The capacity.
    pub(super) name: Name,
    /// What is asked, and what there is in all (0 where the device lacks the capacity).
    pub(super) amount: (i128, i128),
}

/// What a request for `asked` takes of each capacity of `traits`, in their order. Names compare
/// literally, as upstream's do. An exclusive device is asked the same, and takes nothing from it.
pub(super) fn draw(traits: &Traits, asked: &[(Name, i128)]) -> Result<Vec<i128>, Unfit> {
    for (name, amount) in asked {
        if !traits.capacity.iter().any(|c| c.name == *name) {
            return Err(Unfit { name: name.clone(), amount: (*amount, 0) });
        }
    }
    let mut draws = Vec::with_capacity(traits.capacity.len());
    for capacity in &traits.capacity {
        let policy = capacity.policy.as_deref();
        let wanted = asked.iter().find(|(name, _)| *name == capacity.name).map(|(_, a)| *a);
        let taken = match (wanted, policy) {
            (Some(amount), Some(policy)) => round(amount, policy),
            (Some(amount), None) => Some(amount),
            (None, policy) => Some(policy.and_then(|p| p.default).unwrap_or(capacity.nanos)),
        };
        match taken {
            Some(amount) if amount <= capacity.nanos => draws.push(amount),
            Some(_) | None => {
                let amount = (wanted.or(taken).unwrap_or(0), capacity.nanos);
                return Err(Unfit { name: capacity.name.clone(), amount });
            }
        }
    }
    Ok(draws)
}

/// The amount that the policy makes of `amount`; none where it allows none.
fn round(amount: i128, policy: &CapacityPolicy) -> Option<i128> {
    if !policy.valid.is_empty() {
        return policy.valid.iter().copied().find(|v| *v >= amount);
    }
    let Some((Some(min), max, step)) = policy.range else { return Some(amount) };
    let rounded = match step {
        _ if amount <= min => min,
        Some(step) if step > 0 => {
            let (low, by) = (whole(min), whole(step).max(1));
            let steps = (whole(amount) - low + by - 1) / by;
            low.checked_add(steps.checked_mul(by)?)?.checked_mul(UNIT)?
        }
        Some(_) | None => amount,
    };
    max.is_none_or(|m| rounded <= m).then_some(rounded)
}

/// Whole units, rounded up.
fn whole(nanos: i128) -> i128 {
    nanos.div_euclid(UNIT) + i128::from(nanos.rem_euclid(UNIT) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_rounds_up_by_steps_from_its_minimum() {
        let range = |min, max, step| CapacityPolicy {
            range: Some((Some(min * UNIT), Some(max * UNIT), Some(step * UNIT))),
            ..CapacityPolicy::default()
        };
        assert_eq!(round(UNIT, &range(2, 10, 3)), Some(2 * UNIT));
        assert_eq!(round(3 * UNIT, &range(2, 10, 3)), Some(5 * UNIT));
        assert_eq!(round(9 * UNIT, &range(2, 10, 3)), None);
        assert_eq!(round(5 * UNIT / 2, &range(2, 10, 1)), Some(3 * UNIT));
    }

    #[test]
    fn valid_values_round_to_the_next_above() {
        let policy = CapacityPolicy { valid: [UNIT, 4 * UNIT].into(), ..CapacityPolicy::default() };
        assert_eq!(round(2 * UNIT, &policy), Some(4 * UNIT));
        assert_eq!(round(5 * UNIT, &policy), None);
    }
}
