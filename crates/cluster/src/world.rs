//! The world as it was read: objects, what lowering made of them, and the engine that holds the
//! state. A clone of it is a fork: what happens there stays there.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use phalanx_engine::{
    Change, DeviceKey, Engine, FlightId, Links, Name, NodeKey, PodKey, SelectorId, Timestamp,
};
use phalanx_objects::topology::NodeTopology;
use phalanx_objects::{Kind, Object, ObjectRef};

use crate::edit::{self, Edit, EditError, Put};
use crate::finding::{Finding, Source};
use crate::lower::{self, Lowering, ObjectEvent};
use crate::words::{self, SelectorWords};

/// Everything that a question is asked of.
#[derive(Clone, Debug)]
pub struct World {
    lowering: Lowering,
    engine: Engine,
    objects: Option<Objects>,
    /// Worked out when somebody asks.
    findings: OnceLock<Vec<Finding>>,
    /// Links of nodes as lowering gave them to the engine, for what is said of a choice.
    links: BTreeMap<NodeKey, Links>,
    /// The highest place in the input so far: what edits add stands after it.
    last: u64,
    /// How many Placements of the board are held seats in the engine; none where a controller tells the
    /// engine itself what is on its way.
    promised: Option<u64>,
}

/// The first of the numbers under which seats of Placements are on their way.
const PROMISED: u64 = 1 << 62;

impl World {
    /// A world that has seen nothing. It keeps the objects whole, which edits, cures and writes
    /// need.
    pub fn new(lowering: Lowering) -> Self {
        Self { objects: Some(Objects::default()), ..Self::without_objects(lowering) }
    }

    /// As [`new`](Self::new), with the compact forms alone: it can be planned, and answers neither
    /// edits nor cures nor writes. For fleets whose objects would not fit in memory.
    pub fn without_objects(lowering: Lowering) -> Self {
        let engine = Engine::default();
        Self {
            lowering,
            engine,
            objects: None,
            findings: OnceLock::new(),
            links: BTreeMap::new(),
            last: 0,
            promised: Some(0),
        }
    }

    /// A world in which a controller says itself what is on its way to the board.
    pub(crate) fn for_controller(lowering: Lowering) -> Self {
        Self { promised: None, ..Self::new(lowering) }
    }

    /// Takes in one event.
    pub fn absorb(&mut self, event: ObjectEvent) {
        match lower::named(event) {
            ObjectEvent::Applied(object, source) => self.applied(*object, source),
            ObjectEvent::Deleted(gone) => {
                if self.lowering.ends(&gone) {
                    self.lowering.deleted(&gone.object);
                    if let Some(objects) = &mut self.objects {
                        objects.0.remove(&gone.object);
                    }
                }
            }
        }
    }

    fn applied(&mut self, mut object: Object, source: Source) {
        if !self.lowering.is_scored() {
            object.forget_images();
        }
        self.last = self.last.max(source.ordinal);
        let reference = object.reference();
        let kept = self.objects.as_ref().map(|objects| objects.0.get(&reference));
        // Lowering knows of no object that is not kept where they are.
        let first = kept.is_some_and(|kept| kept.is_none());
        if let Some(kept) = kept.flatten()
            && kept.differs(&object, &source)
        {
            let other = kept.source.clone();
            let (first, second) =
                if other.ordinal <= source.ordinal { (&other, &source) } else { (&source, &other) };
            self.lowering.repeated(reference.clone(), first, second);
        }
        if let Some(header) = self.lowering.news(&reference, &object, &source, first) {
            self.lowering.applied(&reference, &object, header);
            if let Some(objects) = &mut self.objects {
                objects.put(reference, object, source);
            }
        }
    }

    /// Lowers what has changed and tells the engine.
    pub fn settle(&mut self) {
        self.lower();
    }

    /// As [`settle`](Self::settle). Answers whether anything may have changed for the engine.
    pub(crate) fn lower(&mut self) -> bool {
        let changes = self.lowering.settle();
        for change in &changes {
            match change {
                Change::Links(node, Some(links)) => {
                    self.links.insert(node.clone(), links.clone());
                }
                Change::Links(node, None) => {
                    self.links.remove(node);
                }
                Change::Node(..)
                | Change::Pool(..)
                | Change::Topology(..)
                | Change::Domains(..)
                | Change::Queue(..)
                | Change::Group(..)
                | Change::Member(..)
                | Change::Claim(..)
                | Change::Volume(..)
                | Change::VolumeClaim(..)
                | Change::StorageClass(..)
                | Change::StorageDriver(..)
                | Change::NodeStorage(..)
                | Change::Hold(..)
                | Change::Match(..)
                | Change::Derived(..)
                | Change::Assume(..)
                | Change::Settle(..) => {}
            }
        }
        let changed = !changes.is_empty();
        self.engine.apply(changes);
        self.promise();
        self.findings = OnceLock::new();
        changed
    }

    /// Tells the engine what is on its way to the board.
    pub(crate) fn tell_engine(&mut self, change: Change) {
        self.engine.apply([change]);
    }

    /// What was on its way under this number is there, or will never be.
    pub(crate) fn settle_flight(&mut self, flight: FlightId) {
        self.tell_engine(Change::Settle(flight));
    }

    /// Keeps the seats of Placements from others.
    fn promise(&mut self) {
        let Some(before) = self.promised.filter(|n| *n > 0 || self.lowering.has_placements())
        else {
            return;
        };
        let gone = (0..before).map(|at| Change::Settle(FlightId(PROMISED + at)));
        self.engine.apply(gone);
        let all = self
            .lowering
            .placements()
            .map(|placement| (lower::placed_group(placement), self.lowering.promised(placement)));
        let held: Vec<Change> = all
            .filter(|(_, seats)| !seats.is_empty())
            .zip(PROMISED..)
            .map(|((group, seats), id)| Change::Assume(FlightId(id), group, seats))
            .collect();
        self.promised = Some(held.len() as u64);
        self.engine.apply(held);
    }

    /// Makes an edit that is asked in `namespace`, and settles.
    ///
    /// # Errors
    /// Names what the edit is about and was not read, or can't be changed so. The world is as
    /// before then.
    pub fn edit(&mut self, edit: &Edit, namespace: &str) -> Result<(), EditError> {
        let Some(objects) = &self.objects else {
            return Err(EditError("this world keeps no objects to edit".to_owned()));
        };
        let puts = edit::apply(edit, objects, namespace)?;
        self.put(puts);
        Ok(())
    }

    /// What `ask` says of the world with an edit made. The world is as before afterwards; what the
    /// engine remembers is kept, so that many questions about small edits are cheap.
    ///
    /// # Errors
    /// As [`edit`](Self::edit).
    pub(crate) fn with_edit<T>(
        &mut self,
        edit: &Edit,
        namespace: &str,
        ask: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, EditError> {
        let Some(objects) = &self.objects else {
            return Err(EditError("this world keeps no objects to edit".to_owned()));
        };
        let puts = edit::apply(edit, objects, namespace)?;
        let last = self.last;
        let mut before = Vec::new();
        for put in &puts {
            let reference = match put {
                Put::Object(object) => object.reference(),
                Put::Gone(reference) => reference.clone(),
            };
            let kept = objects.0.get(&reference).cloned();
            before.push((reference, kept));
        }
        self.put(puts);
        let answer = ask(self);
        for (reference, kept) in before {
            self.absorb(match kept {
                Some(Kept { object, source }) => {
                    ObjectEvent::Applied(Box::new((*object).clone()), source)
                }
                None => ObjectEvent::Deleted(reference.into()),
            });
        }
        self.settle();
        self.last = last;
        Ok(answer)
    }

    /// Makes the changes of an edit, and settles.
    fn put(&mut self, puts: Vec<Put>) {
        for put in puts {
            let event = match put {
                Put::Object(object) => {
                    let source = self.source_of(&object.reference());
                    ObjectEvent::Applied(object, source)
                }
                Put::Gone(reference) => ObjectEvent::Deleted(reference.into()),
            };
            self.absorb(event);
        }
        self.settle();
    }

    /// Where the object stands in the input; what is new stands after all.
    fn source_of(&self, reference: &ObjectRef) -> Source {
        let known = self.objects.as_ref().and_then(|objects| objects.0.get(reference));
        match known {
            Some(kept) => kept.source.clone(),
            None => Source { file: "--if".into(), line: 0, ordinal: self.last + 1 },
        }
    }

    /// What lowering can look up.
    pub fn lowering(&self) -> &Lowering {
        &self.lowering
    }

    /// Takes note of an object of a kind that is not read.
    pub fn skip(&mut self, api_version: &str, kind: &str, source: Source) {
        self.lowering.skip(api_version, kind, source);
    }

    /// Takes note that an object is in the input and could not be read.
    pub fn unread(&mut self, reference: ObjectRef) {
        self.lowering.unread(reference);
    }

    /// The engine, to decide with.
    pub(crate) fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The state, for audits.
    pub fn state(&self) -> &phalanx_engine::State {
        self.engine.state()
    }

    /// The objects, where they are kept.
    pub fn objects(&self) -> Option<&Objects> {
        self.objects.as_ref()
    }

    /// What was found wrong, and what the input lacks.
    pub fn findings(&self) -> &[Finding] {
        self.findings.get_or_init(|| {
            let mut all = self.lowering.findings();
            all.extend(self.lowering.absent());
            all.extend(self.lowering.volumes_assumed());
            all.sort();
            all
        })
    }

    /// The links of a node, if any are known.
    pub fn links(&self, node: &NodeKey) -> Option<&Links> {
        self.links.get(node)
    }

    /// The NodeTopology of a node, where objects are kept and there is one.
    pub(crate) fn topology(&self, node: &NodeKey) -> Option<&NodeTopology> {
        let objects = self.objects.as_ref()?;
        let of = |object: &Object| {
            let Object::NodeTopology(topology) = object else { return false };
            topology.node_name() == node.0.as_str()
        };
        let name = node.0.to_string();
        let own = ObjectRef { kind: Kind::NodeTopology, namespace: String::new(), name };
        let own = objects.get(&own).filter(|object| of(object));
        let found = own.or_else(|| objects.of_kind(Kind::NodeTopology).find(|object| of(object)));
        if let Some(Object::NodeTopology(topology)) = found { Some(topology) } else { None }
    }

    /// What a selector finds on a device: the part that decides, and the values.
    pub(crate) fn explain(&self, selector: SelectorId, on: &DeviceKey) -> Option<SelectorWords> {
        match self.lowering.explain(selector, on) {
            Some(failing) => Some(words::selector(&failing)),
            None => {
                let part = self.lowering.selector_text(selector)?.to_owned();
                Some(SelectorWords { part, finds: String::new() })
            }
        }
    }

    /// A device's value of an attribute, by its fully qualified name; of a list one element where that
    /// is asked for.
    pub(crate) fn attribute(
        &self,
        attribute: &Name,
        on: &DeviceKey,
        element: Option<usize>,
    ) -> Option<String> {
        let device = self.lowering.device(on)?;
        let (_, value) = device.attributes.iter().find(|(name, _)| name == attribute)?;
        element.map_or_else(|| Some(words::attribute(value)), |at| words::element(value, at))
    }

    /// The newest time stamp read.
    pub fn newest_time(&self) -> Option<Timestamp> {
        self.lowering.newest_time()
    }

    /// How many nodes there are.
    pub fn nodes_len(&self) -> usize {
        self.engine.state().nodes_len()
    }

    /// How many devices the newest slices publish.
    pub fn devices_len(&self) -> usize {
        self.engine.state().devices_len()
    }
}

/// The objects that edits and writes need whole, by reference.
#[derive(Clone, Debug, Default)]
pub struct Objects(BTreeMap<ObjectRef, Kept>);

#[derive(Clone, Debug)]
struct Kept {
    object: Arc<Object>,
    source: Source,
}

impl Objects {
    /// The object with this reference.
    pub fn get(&self, reference: &ObjectRef) -> Option<&Object> {
        self.0.get(reference).map(|kept| &*kept.object)
    }

    /// Every object of a kind, by namespace and name.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.0
            .range(first(kind, "")..)
            .take_while(move |(reference, _)| reference.kind == kind)
            .map(|(_, kept)| &*kept.object)
    }

    /// Every object of a kind in one namespace, by name.
    pub fn in_namespace<'a>(
        &'a self,
        kind: Kind,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Object> {
        self.0
            .range(first(kind, namespace)..)
            .take_while(move |(reference, _)| {
                reference.kind == kind && reference.namespace == namespace
            })
            .map(|(_, kept)| &*kept.object)
    }

    /// Whether a pod that is among them names its node itself.
    pub(crate) fn names_node(&self, pod: &PodKey) -> bool {
        let (namespace, name) = (pod.0.namespace.to_string(), pod.0.name.to_string());
        let found = self.get(&ObjectRef { kind: Kind::Pod, namespace, name });
        matches!(found, Some(Object::Pod(pod)) if !pod.spec.node_name.is_empty())
    }

    /// Every object, in the order of the input.
    pub fn in_order(&self) -> Vec<&Object> {
        let mut kept: Vec<&Kept> = self.0.values().collect();
        kept.sort_by_key(|kept| kept.source.ordinal);
        kept.into_iter().map(|kept| &*kept.object).collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps an object under its reference, in which it is named in full.
    pub(crate) fn put(&mut self, reference: ObjectRef, object: Object, source: Source) {
        self.0.insert(reference, Kept { object: Arc::new(object), source });
    }
}

impl Kept {
    /// Whether another state of the object, read elsewhere, has other content and no
    /// `resourceVersion` says which of the two is newer.
    fn differs(&self, object: &Object, source: &Source) -> bool {
        let version = |object: &Object| object.metadata().resource_version.parse::<u64>().ok();
        let versions = version(object).zip(version(&self.object));
        self.source != *source
            && versions.is_none_or(|(new, old)| new == old)
            && *self.object != *object
    }
}

fn first(kind: Kind, namespace: &str) -> ObjectRef {
    ObjectRef { kind, namespace: namespace.to_owned(), name: String::new() }
}
