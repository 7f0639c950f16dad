//! A controller in front of the board: each watch delivers at its own pace, writes are taken in any order,
//! answers come late or are lost. All by a seed.

use std::collections::BTreeMap;

use phalanx_cluster::control::{
    Answer, ControlOptions, Controller, Effect, EffectId, Event, Step, kinds,
};
use phalanx_cluster::{Compat, Version};
use phalanx_engine::Timestamp;
use phalanx_objects::Kind;
use phalanx_objects::core::Pod;

use super::board::{Board, Entry};
use super::chance::Chance;

pub(crate) fn options(scheduler: &str) -> ControlOptions {
    ControlOptions::new(scheduler, Compat::new(Version::default()))
}

/// A controller with what is on its way to it and from it.
pub(crate) struct Client {
    pub(crate) controller: Controller,
    /// How far each watch has read the log.
    read: BTreeMap<Kind, usize>,
    answers: Vec<(EffectId, Answer)>,
    effects: Vec<Effect>,
    /// What another had sent before it was stopped, and what lands only now.
    pub(crate) late: Vec<Effect>,
    pub(crate) wake_at: Option<Timestamp>,
    /// What the steps said.
    pub(crate) steps: Vec<Step>,
}

impl Client {
    /// A controller that has listed the board.
    pub(crate) fn new(options: ControlOptions, board: &Board, now: Timestamp) -> Self {
        let mut client = Self {
            controller: Controller::new(options),
            read: BTreeMap::new(),
            answers: Vec::new(),
            effects: Vec::new(),
            late: Vec::new(),
            wake_at: None,
            steps: Vec::new(),
        };
        for kind in kinds() {
            client.list(kind, board, now);
        }
        client
    }

    /// Stops. Answers what it has sent and was not taken yet.
    pub(crate) fn into_sent(self) -> Vec<Effect> {
        self.effects
    }

    /// Changes the answers that are on their way.
    pub(crate) fn lose_answers(&mut self, change: impl Fn(Answer) -> Answer) {
        let answers = std::mem::take(&mut self.answers);
        self.answers = answers.into_iter().map(|(id, answer)| (id, change(answer))).collect();
    }

    /// Loses a write that is on its way, and says nothing of it.
    pub(crate) fn lose_effect(&mut self) {
        self.answers.extend(self.effects.pop().map(|effect| (effect.id, Answer::Unknown)));
    }

    /// Lists a kind anew, as after a watch was lost.
    pub(crate) fn list(&mut self, kind: Kind, board: &Board, now: Timestamp) {
        let mut events = vec![Event::Listing(kind)];
        let of_kind = board.objects.iter().filter(|(of, _)| of.kind == kind);
        events.extend(of_kind.map(|(_, object)| Event::Found(Box::new(object.clone()))));
        events.push(Event::Listed { kind, version: board.version.to_string() });
        self.read.insert(kind, board.log.get(&kind).map_or(0, Vec::len));
        self.step(events, now);
    }

    /// Loses what a watch would have shown.
    pub(crate) fn lose_watch(&mut self, kind: Kind, board: &Board) {
        self.read.insert(kind, board.log.get(&kind).map_or(0, Vec::len));
    }

    pub(crate) fn step(&mut self, events: Vec<Event>, now: Timestamp) {
        let step = self.controller.step(events, now);
        self.effects.extend(step.effects.iter().cloned());
        self.wake_at = step.wake_at;
        self.steps.push(step);
    }

    /// What the watch of a kind has not shown yet.
    fn unread<'a>(&self, kind: Kind, board: &'a Board) -> &'a [(u64, Entry)] {
        let from = self.read.get(&kind).copied().unwrap_or_default();
        board.log.get(&kind).map_or(&[], |log| log.get(from..).unwrap_or_default())
    }

    fn unread_kinds(&self, board: &Board) -> Vec<Kind> {
        kinds().filter(|kind| !self.unread(*kind, board).is_empty()).collect()
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_quiet(&self, board: &Board) -> bool {
        self.effects.is_empty() && self.answers.is_empty() && self.unread_kinds(board).is_empty()
    }

    /// Lets one thing happen: a watch shows something, a write is taken, an answer comes. Whether a write
    /// was taken.
    pub(crate) fn turn(
        &mut self,
        board: &mut Board,
        chance: &mut Chance,
        faults: &Faults,
        now: Timestamp,
    ) -> bool {
        if !self.late.is_empty() && chance.one_in(6) {
            let effect = self.late.swap_remove(chance.index(self.late.len()));
            board.write(&effect);
            return true;
        }
        let kinds = self.unread_kinds(board);
        let ways = [!kinds.is_empty(), !self.effects.is_empty(), !self.answers.is_empty()];
        let able: Vec<usize> = (0..3).filter(|way| ways[*way]).collect();
        if able.is_empty() {
            return false;
        }
        match able[chance.index(able.len())] {
            0 => {
                let kind = kinds[chance.index(kinds.len())];
                let unread = self.unread(kind, board);
                let many = 1 + chance.index(unread.len());
                let mut events: Vec<Event> = unread[..many].iter().map(event).collect();
                *self.read.entry(kind).or_default() += many;
                if faults.repeats && chance.one_in(3) {
                    // A watch that is begun again shows some of it twice, older states among it.
                    let log = &board.log[&kind];
                    let from = chance.index(log.len());
                    events.extend(log[from..].iter().take(3).map(event).filter(|event| {
                        let seen = self.read[&kind] > from;
                        seen && matches!(event, Event::Applied(_) | Event::Deleted(_))
                    }));
                }
                self.step(events, now);
                false
            }
            1 => {
                let effect = self.effects.swap_remove(chance.index(self.effects.len()));
                let lost = faults.lost > 0 && chance.one_in(faults.lost);
                if lost && chance.one_in(2) {
                    self.answers.push((effect.id, Answer::Unknown));
                    return false;
                }
                let answer = board.write(&effect);
                let written = matches!(answer, Answer::Written(_));
                let answer = if lost { Answer::Unknown } else { answer };
                self.answers.push((effect.id, answer));
                written
            }
            _ => {
                let (id, answer) = self.answers.swap_remove(chance.index(self.answers.len()));
                self.step(vec![Event::Answered(id, answer)], now);
                false
            }
        }
    }
}

fn event((_, entry): &(u64, Entry)) -> Event {
    match entry {
        Entry::Applied(object) => Event::Applied(Box::new(object.clone())),
        Entry::Deleted(gone) => Event::Deleted(gone.clone()),
    }
}

/// What goes wrong.
pub(crate) struct Faults {
    /// One in so many answers is lost; 0 is none.
    pub(crate) lost: u64,
    /// Watches repeat themselves.
    pub(crate) repeats: bool,
    /// Pods that kubelets refuse.
    pub(crate) refuses: fn(&Pod) -> bool,
}

impl Faults {
    pub(crate) const NONE: Self = Self { lost: 0, repeats: false, refuses: |_| false };
}

/// Lets everything happen until nothing is left to happen before `end`, or `enough` says so. Answers the
/// time.
pub(crate) fn run(
    board: &mut Board,
    clients: &mut [Client],
    (chance, faults): (&mut Chance, &Faults),
    (mut now, end): (Timestamp, Timestamp),
    mut enough: impl FnMut(&Board) -> bool,
) -> Timestamp {
    for _ in 0..200_000 {
        if enough(board) {
            return now;
        }
        if chance.one_in(8) {
            board.controllers();
            board.kubelets(faults.refuses);
        }
        let busy: Vec<usize> =
            (0..clients.len()).filter(|at| !clients[*at].is_quiet(board)).collect();
        if let Some(at) = busy.get(chance.index(busy.len())) {
            now.0 += 1;
            clients[*at].turn(board, chance, faults, now);
            continue;
        }
        let before = board.version;
        board.controllers();
        board.kubelets(faults.refuses);
        if board.version > before {
            continue;
        }
        let wake = clients.iter().filter_map(|client| client.wake_at).min();
        match wake.filter(|at| *at <= end) {
            Some(at) => {
                now = now.max(at);
                clients.iter_mut().for_each(|client| client.step(Vec::new(), now));
            }
            None => return now,
        }
    }
    panic!("it does not come to rest");
}
