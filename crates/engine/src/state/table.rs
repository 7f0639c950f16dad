//! Rows in dense slots, found by key. Slots are reused and mean nothing outside the engine: every
//! order that anyone can see is by key.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// A table of `V` by `K`.
#[derive(Clone, Debug)]
pub(crate) struct Table<K, V> {
    index: FxHashMap<K, u32>,
    rows: Vec<Option<(K, V)>>,
    free: Vec<u32>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { index: FxHashMap::default(), rows: Vec::new(), free: Vec::new() }
    }
}

impl<K: Clone + Eq + Hash, V: Default> Table<K, V> {
    /// The slot of `key`, if it has a row.
    pub(crate) fn slot(&self, key: &K) -> Option<u32> {
        self.index.get(key).copied()
    }

    /// The slot of `key`, with an empty row made where there is none.
    pub(crate) fn slot_or_new(&mut self, key: &K) -> u32 {
        if let Some(slot) = self.slot(key) {
            return slot;
        }
        let row = Some((key.clone(), V::default()));
        let slot = match self.free.pop() {
            Some(slot) => {
                self.rows[slot as usize] = row;
                slot
            }
            None => {
                self.rows.push(row);
                (self.rows.len() - 1) as u32
            }
        };
        self.index.insert(key.clone(), slot);
        slot
    }

    /// The row in `slot`, which must be live.
    #[expect(clippy::expect_used, reason = "a slot in hand is a live row: the state's invariant")]
    pub(crate) fn at(&self, slot: u32) -> &V {
        &self.rows[slot as usize].as_ref().expect("live slot").1
    }

    /// The row in `slot`, which must be live.
    #[expect(clippy::expect_used, reason = "a slot in hand is a live row: the state's invariant")]
    pub(crate) fn at_mut(&mut self, slot: u32) -> &mut V {
        &mut self.rows[slot as usize].as_mut().expect("live slot").1
    }

    /// The row in `slot`, if it is live.
    pub(crate) fn get(&self, slot: u32) -> Option<&V> {
        self.rows.get(slot as usize)?.as_ref().map(|(_, v)| v)
    }

    /// The row of `key`, if there is one.
    pub(crate) fn find(&self, key: &K) -> Option<&V> {
        self.slot(key).map(|slot| self.at(slot))
    }

    /// The key of the row in `slot`, which must be live.
    #[expect(clippy::expect_used, reason = "a slot in hand is a live row: the state's invariant")]
    pub(crate) fn key(&self, slot: u32) -> &K {
        &self.rows[slot as usize].as_ref().expect("live slot").0
    }

    /// Drops the row in `slot`.
    pub(crate) fn remove(&mut self, slot: u32) {
        if let Some((key, _)) = self.rows[slot as usize].take() {
            self.index.remove(&key);
            self.free.push(slot);
        }
    }

    /// One more than the highest slot.
    pub(crate) fn slots(&self) -> u32 {
        self.rows.len() as u32
    }

    /// The live rows, in no order that may be seen.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &K, &V)> {
        self.rows
            .iter()
            .enumerate()
            .filter_map(|(slot, row)| row.as_ref().map(|(k, v)| (slot as u32, k, v)))
    }
}
