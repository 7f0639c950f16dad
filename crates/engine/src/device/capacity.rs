//! What one allocation of a device takes of its capacities (KEP-5075, consumable capacity).
//!
//! Amounts are in billionths of a unit. Rounding is that of `requestPolicy`: steps are counted in
//! whole units, or exactly where `DRAFractionalCapacityRange` has them so.

use crate::decision::Unmet;
use crate::facts::{Capacity, CapacityPolicy, Traits};
use crate::name::Name;

const UNIT: i128 = 1_000_000_000;

/// The greatest amount that kube-scheduler can count steps in.
const STEPS_MAX: i128 = i64::MAX as i128;

/// Why a device can't give what is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    /// The capacity.
    pub(super) name: Name,
    /// What is asked, and what there is of it; for [`Unmet::Policy`] the most that may be asked.
    pub(super) amount: (i128, i128),
    /// What stands against it.
    pub(super) unmet: Unmet,
}

impl Unfit {
    /// Whether it can't be told what is asked: upstream's search ends there.
    pub(super) fn is_absurd(&self) -> bool {
        self.unmet == Unmet::Absurd
    }
}

/// Whether asking such a device for nothing in particular needs no arithmetic: it is exclusive, and
/// all of each capacity can be had.
pub(super) fn is_plain(traits: &Traits) -> bool {
    !traits.shareable && traits.capacity.iter().all(|c| c.policy.is_none() && c.nanos >= 0)
}

/// What a request for `asked` takes of each capacity of `traits`, in their order. Names compare
/// literally, as upstream's do. An exclusive device is asked the same, and takes nothing from it.
pub(super) fn draw(traits: &Traits, asked: &[(Name, i128)]) -> Result<Vec<i128>, Unfit> {
    for (name, amount) in asked {
        if !traits.capacity.iter().any(|c| c.name == *name) {
            return Err(Unfit { name: name.clone(), amount: (*amount, 0), unmet: Unmet::Lacking });
        }
    }
    let wanted = |capacity: &Capacity| {
        asked.iter().find(|(name, _)| *name == capacity.name).map(|(_, amount)| *amount)
    };
    let mut draws = Vec::with_capacity(traits.capacity.len());
    // Absurd amounts come first, whichever capacity they are of.
    for capacity in &traits.capacity {
        let taken = taken(capacity, wanted(capacity));
        let amount = taken.unwrap_or_else(|| wanted(capacity).unwrap_or(0));
        if taken.is_none() || amount < 0 {
            let name = capacity.name.clone();
            return Err(Unfit { name, amount: (amount, capacity.nanos), unmet: Unmet::Absurd });
        }
        draws.push(amount);
    }
    for (capacity, amount) in traits.capacity.iter().zip(&draws) {
        let defaulted = wanted(capacity).is_none();
        let asked = wanted(capacity).unwrap_or(*amount);
        let policy = capacity.policy.as_deref();
        let (limit, unmet) = match policy.filter(|p| !permits(p, *amount, defaulted)) {
            Some(policy) => (most(policy).unwrap_or(capacity.nanos), Unmet::Policy),
            None if *amount > capacity.nanos => (capacity.nanos, Unmet::Short),
            None => continue,
        };
        return Err(Unfit { name: capacity.name.clone(), amount: (asked, limit), unmet });
    }
    Ok(draws)
}

/// What is taken of a capacity; none where the arithmetic of steps does not reach so far.
fn taken(capacity: &Capacity, wanted: Option<i128>) -> Option<i128> {
    let policy = capacity.policy.as_deref();
    let Some(amount) = wanted else {
        return Some(policy.and_then(|p| p.default).unwrap_or(capacity.nanos));
    };
    policy.map_or(Some(amount), |policy| round(amount, policy))
}

/// The amount that the policy makes of `amount`: none where it can't be counted. Whether it is
/// allowed then is asked of [`permits`].
fn round(amount: i128, policy: &CapacityPolicy) -> Option<i128> {
    match policy.range {
        Some((Some(min), _, _)) if amount < min => Some(min),
        Some((Some(min), _, Some(step))) if step > 0 => {
            if policy.exact {
                let rest = amount.saturating_sub(min) % step;
                return Some(if rest == 0 { amount } else { amount.saturating_add(step - rest) });
            }
            if amount > STEPS_MAX * UNIT {
                return None;
            }
            let (low, by) = (whole(min), whole(step).max(1));
            let steps = (whole(amount) - low + by - 1) / by;
            let rounded = low + steps * by;
            (low < 0 || rounded <= STEPS_MAX).then(|| rounded.saturating_mul(UNIT))
        }
        Some((Some(_), _, _)) => Some(amount),
        Some((None, _, _)) | None => {
            Some(policy.valid.iter().copied().find(|v| *v >= amount).unwrap_or(amount))
        }
    }
}

/// Whether the policy allows an amount that was rounded to it. What it takes by default it allows.
fn permits(policy: &CapacityPolicy, amount: i128, defaulted: bool) -> bool {
    if defaulted && policy.default.is_some() {
        return true;
    }
    match policy.range {
        Some((min, max, step)) => {
            let on_step = step.filter(|step| *step > 0).is_none_or(|step| {
                let min = min.unwrap_or(0);
                if policy.exact {
                    amount.saturating_sub(min) % step == 0
                } else {
                    (whole(amount) - whole(min)) % whole(step) == 0
                }
            });
            max.is_none_or(|max| amount <= max) && on_step
        }
        None => policy.valid.is_empty() || policy.valid.contains(&amount),
    }
}

/// The most that a policy lets one ask for.
fn most(policy: &CapacityPolicy) -> Option<i128> {
    policy.range.and_then(|(_, max, _)| max).or_else(|| policy.valid.last().copied())
}

/// Whole units, rounded up.
fn whole(nanos: i128) -> i128 {
    nanos.div_euclid(UNIT) + i128::from(nanos.rem_euclid(UNIT) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: i128, max: i128, step: i128) -> CapacityPolicy {
        CapacityPolicy {
            range: Some((Some(min * UNIT), Some(max * UNIT), Some(step * UNIT))),
            ..CapacityPolicy::default()
        }
    }

    /// What a device of 100 units takes of a request, or none where it does not fit; `Err` where
    /// it can't be told.
    fn asked(amount: i128, policy: CapacityPolicy) -> Result<Option<i128>, ()> {
        let name = Name::new("memory");
        let policy = Some(Box::new(policy));
        let capacity = Capacity { name: name.clone(), nanos: 100 * UNIT, policy };
        let traits = Traits {
            capacity: [capacity].into(),
            shareable: true,
            ..crate::device::tests::world::plain_traits()
        };
        match draw(&traits, &[(name, amount)]) {
            Ok(draws) => Ok(Some(draws[0])),
            Err(unfit) if unfit.is_absurd() => Err(()),
            Err(_) => Ok(None),
        }
    }

    #[test]
    fn a_range_rounds_up_by_steps_from_its_minimum() {
        assert_eq!(asked(UNIT, range(2, 10, 3)), Ok(Some(2 * UNIT)));
        assert_eq!(asked(3 * UNIT, range(2, 10, 3)), Ok(Some(5 * UNIT)));
        assert_eq!(asked(9 * UNIT, range(2, 10, 3)), Ok(None));
        assert_eq!(asked(5 * UNIT / 2, range(2, 10, 1)), Ok(Some(3 * UNIT)));
    }

    #[test]
    fn exact_steps_are_counted_below_a_unit_and_a_thousandth() {
        let exact = |min, max, step| CapacityPolicy {
            range: Some((Some(min), Some(max), Some(step))),
            exact: true,
            ..CapacityPolicy::default()
        };
        let (half, milli) = (UNIT / 2, UNIT / 1000);
        assert_eq!(asked(UNIT + 1, exact(half, 3 * UNIT, half)), Ok(Some(UNIT + half)));
        assert_eq!(asked(milli / 10, exact(0, UNIT, milli)), Ok(Some(milli)));
        assert_eq!(asked(i128::from(i64::MAX) * UNIT, exact(0, UNIT, UNIT)), Ok(None));
    }

    #[test]
    fn whole_steps_end_where_upstreams_numbers_do() {
        let max = i128::from(i64::MAX);
        assert_eq!(asked((max + 1) * UNIT, range(0, 10, 1)), Err(()));
        assert_eq!(asked(max * UNIT, range(0, 10, 1)), Ok(None));
        assert_eq!(asked(max * UNIT, range(0, 10, 2)), Err(()));
        assert_eq!(asked(-UNIT, CapacityPolicy::default()), Err(()));
    }

    #[test]
    fn valid_values_round_to_the_next_above() {
        let policy = CapacityPolicy { valid: [UNIT, 4 * UNIT].into(), ..CapacityPolicy::default() };
        assert_eq!(asked(2 * UNIT, policy.clone()), Ok(Some(4 * UNIT)));
        assert_eq!(asked(5 * UNIT, policy), Ok(None));
    }

    /// What is taken of a device with so much memory, or why it does not fit.
    fn drawn(nanos: i128, policy: CapacityPolicy, asked: &[(Name, i128)]) -> Result<i128, Unfit> {
        let policy = Some(Box::new(policy));
        let capacity = Capacity { name: Name::new("memory"), nanos, policy };
        let traits =
            Traits { capacity: [capacity].into(), ..crate::device::tests::world::plain_traits() };
        draw(&traits, asked).map(|draws| draws[0])
    }

    fn unfit(name: &str, amount: (i128, i128), unmet: Unmet) -> Unfit {
        let amount = (amount.0 * UNIT, amount.1 * UNIT);
        Unfit { name: Name::new(name), amount, unmet }
    }

    #[test]
    fn what_does_not_fit_says_what_was_asked_and_the_most_there_is() {
        let ask = |name: &str, amount: i128| [(Name::new(name), amount * UNIT)];
        let of = |policy: CapacityPolicy, asked: i128| {
            drawn(100 * UNIT, policy, &ask("memory", asked)).unwrap_err()
        };
        let none = CapacityPolicy::default;
        let lacking = drawn(100 * UNIT, none(), &ask("cores", 2)).unwrap_err();
        assert_eq!(lacking, unfit("cores", (2, 0), Unmet::Lacking));
        assert_eq!(of(none(), 101), unfit("memory", (101, 100), Unmet::Short));
        // As it was asked, and not as it was rounded.
        assert_eq!(of(range(2, 10, 3), 9), unfit("memory", (9, 10), Unmet::Policy));
        let valid = CapacityPolicy { valid: [UNIT, 4 * UNIT].into(), ..none() };
        assert_eq!(of(valid, 5), unfit("memory", (5, 4), Unmet::Policy));
        let steps = CapacityPolicy { range: Some((None, None, Some(3 * UNIT))), ..none() };
        assert_eq!(of(steps, 4), unfit("memory", (4, 100), Unmet::Policy));
        assert_eq!(of(none(), -1), unfit("memory", (-1, 100), Unmet::Absurd));
    }

    #[test]
    fn where_nothing_is_asked_the_default_is_taken_or_all() {
        let valid = || CapacityPolicy { valid: [UNIT, 4 * UNIT].into(), ..Default::default() };
        let default = CapacityPolicy { default: Some(2 * UNIT), ..valid() };
        assert_eq!(drawn(9 * UNIT, default.clone(), &[]), Ok(2 * UNIT));
        assert_eq!(drawn(UNIT, default, &[]), Err(unfit("memory", (2, 1), Unmet::Short)));
        assert_eq!(drawn(4 * UNIT, valid(), &[]), Ok(4 * UNIT));
        assert_eq!(drawn(9 * UNIT, valid(), &[]), Err(unfit("memory", (9, 4), Unmet::Policy)));
        assert_eq!(drawn(10 * UNIT, range(2, 10, 4), &[]), Ok(10 * UNIT));
        assert_eq!(
            drawn(9 * UNIT, range(2, 10, 4), &[]),
            Err(unfit("memory", (9, 10), Unmet::Policy))
        );
        assert_eq!(
            drawn(-UNIT, range(2, 10, 4), &[]),
            Err(unfit("memory", (-1, -1), Unmet::Absurd))
        );
    }

    #[test]
    fn an_amount_that_can_not_be_counted_comes_before_one_that_is_too_much() {
        let capacity =
            |name: &str, nanos: i128| Capacity { name: Name::new(name), nanos, policy: None };
        let capacity = [capacity("cores", UNIT), capacity("memory", -UNIT)].into();
        let traits = Traits { capacity, ..crate::device::tests::world::plain_traits() };
        let asked = [(Name::new("cores"), 2 * UNIT)];
        assert_eq!(draw(&traits, &asked), Err(unfit("memory", (-1, -1), Unmet::Absurd)));
    }
}
