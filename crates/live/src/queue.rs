//! Which write is made next, where more are given out than may be under way together. What has been begun is
//! finished first: of many pods that wait for their writes the first are then bound early, and not all at the
//! end; and what only tells of something comes last. Nothing waits for ever: each write is overtaken by a
//! bounded number of later ones.

use std::collections::BTreeMap;

use phalanx_cluster::control::Write;
use phalanx_cluster::raise;

use crate::carry::Parcel;

/// How many later writes may overtake one that begins something, and one that tells of something.
const BEGINS: u64 = 1 << 16;
const TELLS: u64 = 1 << 17;

/// Writes that wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// By turn, and within one as they were given out.
    waiting: BTreeMap<(u64, u64), Parcel>,
    given: u64,
}

impl Queue {
    /// Takes a write in.
    pub(crate) fn push(&mut self, parcel: Parcel) {
        let turn = self.given.saturating_add(overtaken_by(&parcel.effect.write));
        self.waiting.insert((turn, self.given), parcel);
        self.given += 1;
    }

    /// The next.
    pub(crate) fn pop(&mut self) -> Option<Parcel> {
        self.waiting.pop_first().map(|(_, parcel)| parcel)
    }
}

/// How many later writes may overtake it.
fn overtaken_by(write: &Write) -> u64 {
    match write {
        Write::Seat(
            raise::Write::CreateClaim(_)
            | raise::Write::Finalize(_)
            | raise::Write::KeepVolume(_)
            | raise::Write::SelectNode(_),
        )
        | Write::CreatePlacement(_) => BEGINS,
        Write::Seat(
            raise::Write::Unprotect(_)
            | raise::Write::DeleteClaim(_)
            | raise::Write::ClaimStatus(_)
            | raise::Write::PodStatus(_)
            | raise::Write::Bind(_),
        )
        | Write::UpdatePlacement(_)
        | Write::DeletePlacement(_)
        | Write::DeletePod(_) => 0,
        Write::PodCondition(_) | Write::Event(_) => TELLS,
    }
}

#[cfg(test)]
mod tests {
    use phalanx_cluster::control::{Effect, EffectId, Guard, PodConditionWrite, PodName};

    use super::*;

    fn parcel(id: u64, write: Write) -> Parcel {
        let effect = Effect { id: EffectId(id), guard: Guard::default(), write };
        Parcel { effect, stands: false }
    }

    fn pod(id: u64) -> PodName {
        PodName { namespace: "d".to_owned(), name: id.to_string() }
    }

    fn begins(id: u64) -> Parcel {
        parcel(id, Write::Seat(raise::Write::Finalize(Box::default())))
    }

    fn goes_on(id: u64) -> Parcel {
        parcel(id, Write::Seat(raise::Write::ClaimStatus(Box::default())))
    }

    fn tells(id: u64) -> Parcel {
        let (uid, message) = (String::new(), String::new());
        let condition = PodConditionWrite { pod: pod(id), uid, reason: "Unschedulable", message };
        parcel(id, Write::PodCondition(condition))
    }

    fn order(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|parcel| parcel.effect.id.0).collect()
    }

    #[test]
    fn what_is_begun_is_finished_first_and_what_tells_comes_last() {
        let mut queue = Queue::default();
        for parcel in [tells(0), begins(1), begins(2), goes_on(3), goes_on(4)] {
            queue.push(parcel);
        }
        assert_eq!(order(&mut queue), [3, 4, 1, 2, 0]);
    }

    #[test]
    fn nothing_is_overtaken_for_ever() {
        let mut queue = Queue::default();
        queue.push(begins(0));
        (1..=BEGINS + 1).for_each(|id| queue.push(goes_on(id)));
        let order = order(&mut queue);
        let at = order.iter().position(|id| *id == 0).expect("it is made");
        assert_eq!(at as u64, BEGINS - 1, "by the next its turn has come");
    }
}
