//! A small API server, with the controllers and kubelets that matter here: objects by name, versions that
//! count up, guards, what validation forbids, and a log from which each watch reads at its own pace.

use std::collections::BTreeMap;

use phalanx_cluster::Gone;
use phalanx_cluster::control::{Answer, Effect, EventWrite, Guard, Write};
use phalanx_cluster::raise;
use phalanx_objects::core::{Pod, PodPhase};
use phalanx_objects::meta::{Condition, ObjectMeta};
use phalanx_objects::read::{Item, read};
use phalanx_objects::resource::ResourceClaim;
use phalanx_objects::scheduling::{PodGroup, Scheduling, SchedulingKind};
use phalanx_objects::storage::SELECTED_NODE_ANNOTATION;
use phalanx_objects::{Kind, Object, ObjectRef};

/// What happened to an object.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Applied(Object),
    Deleted(Gone),
}

/// What is stored, and all that happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    pub(crate) objects: BTreeMap<ObjectRef, Object>,
    pub(crate) version: u64,
    pub(crate) log: BTreeMap<Kind, Vec<(u64, Entry)>>,
    /// Every write that was taken, by what it was.
    pub(crate) written: Vec<String>,
    pub(crate) events: Vec<EventWrite>,
    /// Writes that begin with this are refused, as a webhook or a role does.
    pub(crate) forbidden: Option<&'static str>,
    /// How many were.
    pub(crate) refused: usize,
    /// Pods that are deleted take their time to end.
    pub(crate) lingers: bool,
    uids: u64,
}

impl Board {
    pub(crate) fn new(yaml: &str) -> Self {
        let mut board = Self::default();
        board.add(yaml);
        board
    }

    /// Creates these objects. Pods get the claims of their templates, as the resourceclaim controller makes
    /// them.
    pub(crate) fn add(&mut self, yaml: &str) {
        let mut all = Vec::new();
        read("board.yaml", yaml.as_bytes(), &mut |item| match item {
            Item::Object(object, _) => all.push(object),
            Item::Gone(..) | Item::Unknown { .. } | Item::Problem(_) => panic!("{item:?}"),
        });
        for mut object in all {
            self.uids += 1;
            let uids = self.uids;
            let meta = object.metadata_mut();
            if meta.uid.is_empty() {
                meta.uid = format!("00000000-0000-4000-8000-{uids:012}");
            }
            meta.creation_timestamp = Some(jiff::Timestamp::from_second(1_000).expect("a time"));
            self.put(object.clone());
            if let Object::Pod(pod) = &object {
                self.make_claims(pod);
            } else if let Object::Scheduling(Scheduling::PodGroup(group)) = &object {
                self.make_group_claims(group);
            }
        }
    }

    fn make_claims(&mut self, pod: &Pod) {
        let mut pod = pod.clone();
        for entry in &pod.spec.resource_claims {
            let Some(template) = &entry.resource_claim_template_name else { continue };
            let of_group = self.group_of(&pod).and_then(|group| {
                let statuses = group.status.resource_claim_statuses.iter();
                statuses
                    .clone()
                    .find(|status| status.name == entry.name)?
                    .resource_claim_name
                    .clone()
            });
            let name = of_group.unwrap_or_else(|| {
                self.make_claim(template, &entry.name, ("v1", "Pod", &pod.metadata))
            });
            pod.status.resource_claim_statuses.push(
                phalanx_objects::core::PodResourceClaimStatus {
                    name: entry.name.clone(),
                    resource_claim_name: Some(name),
                },
            );
        }
        self.put(Object::from(pod));
    }

    /// Claims that a PodGroup has once for all of its pods.
    fn make_group_claims(&mut self, group: &PodGroup) {
        let mut group = group.clone();
        for entry in &group.spec.resource_claims {
            let Some(template) = &entry.resource_claim_template_name else { continue };
            let owner = ("scheduling.k8s.io/v1beta1", "PodGroup", &group.metadata);
            let name = self.make_claim(template, &entry.name, owner);
            group.status.resource_claim_statuses.push(
                phalanx_objects::scheduling::GroupClaimStatus {
                    name: entry.name.clone(),
                    resource_claim_name: Some(name),
                },
            );
        }
        self.put(Object::Scheduling(Scheduling::PodGroup(Box::new(group))));
    }

    fn make_claim(
        &mut self,
        template: &str,
        entry: &str,
        (api_version, kind, owner): (&str, &str, &ObjectMeta),
    ) -> String {
        let of = named(Kind::ResourceClaimTemplate, &owner.namespace, template);
        let Some(Object::ResourceClaimTemplate(template)) = self.objects.get(&of) else {
            panic!("{of} is missing")
        };
        let spec = template.spec.spec.clone();
        let mut claim = ResourceClaim { spec, ..ResourceClaim::default() };
        claim.metadata.name = format!("{}-{entry}-x", owner.name);
        claim.metadata.namespace.clone_from(&owner.namespace);
        let annotation = (raise::POD_CLAIM_NAME.to_owned(), entry.to_owned());
        claim.metadata.annotations = [annotation].into_iter().collect();
        claim.metadata.owner_references.push(phalanx_objects::meta::OwnerReference {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
            controller: Some(true),
        });
        let name = claim.metadata.name.clone();
        self.create(Object::from(claim)).expect("a new claim");
        name
    }

    /// The PodGroup that a pod names.
    fn group_of(&self, pod: &Pod) -> Option<&PodGroup> {
        let name = pod.spec.scheduling_group.as_ref()?.pod_group_name.as_ref()?;
        self.group(&pod.metadata.namespace, name)
    }

    fn group(&self, namespace: &str, name: &str) -> Option<&PodGroup> {
        let kind = Kind::Scheduling(SchedulingKind::PodGroup);
        match self.objects.get(&named(kind, namespace, name)) {
            Some(Object::Scheduling(Scheduling::PodGroup(group))) => Some(group),
            Some(_) | None => None,
        }
    }

    fn put(&mut self, mut object: Object) -> Object {
        self.version += 1;
        object.metadata_mut().resource_version = self.version.to_string();
        let entry = (self.version, Entry::Applied(object.clone()));
        self.log.entry(object.kind()).or_default().push(entry);
        self.objects.insert(object.reference(), object.clone());
        object
    }

    fn create(&mut self, mut object: Object) -> Result<Object, Answer> {
        if self.objects.contains_key(&object.reference()) {
            return Err(Answer::Conflict);
        }
        self.uids += 1;
        object.metadata_mut().uid = format!("00000000-0000-4000-8000-{:012}", self.uids);
        Ok(self.put(object))
    }

    fn remove(&mut self, of: &ObjectRef) {
        let Some(object) = self.objects.remove(of) else { return };
        self.version += 1;
        let gone = Gone {
            object: of.clone(),
            uid: object.metadata().uid.clone(),
            resource_version: self.version.to_string(),
        };
        self.log.entry(of.kind).or_default().push((self.version, Entry::Deleted(gone)));
    }

    /// Deletes an object: it goes when nothing keeps it, a pod on a node when the kubelet has ended it.
    pub(crate) fn delete(&mut self, of: &ObjectRef) {
        let Some(mut object) = self.objects.get(of).cloned() else { return };
        let kept = !object.metadata().finalizers.is_empty()
            || matches!(&object, Object::Pod(pod)
                if !pod.spec.node_name.is_empty() && !pod.status.phase.is_terminal());
        if !kept {
            self.remove(of);
        } else if object.metadata().deletion_timestamp.is_none() {
            object.metadata_mut().deletion_timestamp =
                Some(jiff::Timestamp::from_second(2_000).expect("a time"));
            self.put(object);
        }
    }

    pub(crate) fn pod(&self, name: &str) -> Option<&Pod> {
        match self.objects.get(&named(Kind::Pod, "default", name)) {
            Some(Object::Pod(pod)) => Some(pod),
            Some(_) | None => None,
        }
    }

    pub(crate) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.objects
            .values()
            .filter_map(|object| if let Object::Pod(pod) = object { Some(&**pod) } else { None })
    }

    pub(crate) fn claims(&self) -> impl Iterator<Item = &ResourceClaim> {
        self.objects.values().filter_map(|object| {
            if let Object::ResourceClaim(claim) = object { Some(&**claim) } else { None }
        })
    }

    pub(crate) fn change_pod(&mut self, name: &str, change: impl FnOnce(&mut Pod)) {
        let mut pod = self.pod(name).expect("a pod").clone();
        change(&mut pod);
        self.put(Object::from(pod));
    }

    /// Changes an object as somebody else would.
    pub(crate) fn change(&mut self, of: &ObjectRef, change: impl FnOnce(&mut Object)) {
        let mut object = self.objects.get(of).expect("an object").clone();
        change(&mut object);
        self.put(object);
    }

    fn guarded(&self, of: &ObjectRef, guard: &Guard) -> Result<Object, Answer> {
        let Some(found) = self.objects.get(of) else { return Err(Answer::Missing) };
        let meta = found.metadata();
        let other_uid = !guard.uid.is_empty() && meta.uid != guard.uid;
        let stale = guard.version.as_ref().is_some_and(|version| *version != meta.resource_version);
        if other_uid || stale { Err(Answer::Conflict) } else { Ok(found.clone()) }
    }

    /// Makes a write, as the server would.
    pub(crate) fn write(&mut self, effect: &Effect) -> Answer {
        let (word, of) = (word(&effect.write), effect.target());
        let of = of.map(|of| format!(" {of}")).unwrap_or_default();
        let what = format!("{word}{of}");
        if self.forbidden.is_some_and(|forbidden| what.starts_with(forbidden)) {
            self.refused += 1;
            return Answer::Refused { code: 403, message: "it may not be".to_owned() };
        }
        match self.try_write(effect) {
            Ok(object) => {
                self.written.push(what);
                Answer::Written(object.map(Box::new))
            }
            Err(answer) => answer,
        }
    }

    fn found(&self, effect: &Effect) -> Result<Object, Answer> {
        self.guarded(&effect.target().expect("an object"), &effect.guard)
    }

    fn found_pod(&self, effect: &Effect) -> Result<Pod, Answer> {
        let Object::Pod(pod) = self.found(effect)? else { panic!("{effect:?} is of no pod") };
        Ok((*pod).clone())
    }

    fn try_write(&mut self, effect: &Effect) -> Result<Option<Object>, Answer> {
        match &effect.write {
            Write::Seat(write) => self.write_seat(write, effect),
            Write::DeletePlacement(_) | Write::DeletePod(_) => self.delete_found(effect),
            Write::CreatePlacement(placement) => {
                self.create(Object::from((**placement).clone())).map(Some)
            }
            Write::UpdatePlacement(placement) => {
                self.found(effect)?;
                Ok(Some(self.put(Object::from((**placement).clone()))))
            }
            Write::PodCondition(write) => {
                let mut pod = self.found_pod(effect)?;
                pod.status.conditions.retain(|condition| condition.kind != "PodScheduled");
                pod.status.conditions.push(Condition {
                    kind: "PodScheduled".to_owned(),
                    status: "False".to_owned(),
                    reason: write.reason.to_owned(),
                    ..Condition::default()
                });
                Ok(Some(self.put(Object::from(pod))))
            }
            Write::Event(event) => {
                self.events.push(event.clone());
                Ok(None)
            }
        }
    }

    fn delete_found(&mut self, effect: &Effect) -> Result<Option<Object>, Answer> {
        let of = self.found(effect)?.reference();
        self.delete(&of);
        Ok(self.objects.get(&of).cloned())
    }

    fn write_seat(
        &mut self,
        write: &raise::Write,
        effect: &Effect,
    ) -> Result<Option<Object>, Answer> {
        match write {
            raise::Write::CreateClaim(claim) => {
                let fresh = ResourceClaim { status: Default::default(), ..(**claim).clone() };
                self.create(Object::from(fresh)).map(Some)
            }
            raise::Write::Finalize(claim) | raise::Write::Unprotect(claim) => {
                let mut object = self.found(effect)?;
                let meta = object.metadata_mut();
                meta.finalizers.clone_from(&claim.metadata.finalizers);
                if meta.deletion_timestamp.is_some() && meta.finalizers.is_empty() {
                    self.remove(&object.reference());
                    return Ok(None);
                }
                Ok(Some(self.put(object)))
            }
            raise::Write::ClaimStatus(claim) => {
                let Object::ResourceClaim(old) = self.found(effect)? else {
                    panic!("{effect:?} is of no claim")
                };
                Ok(Some(self.write_status(&old, claim)?))
            }
            raise::Write::DeleteClaim(_) => self.delete_found(effect),
            raise::Write::PodStatus(write) => {
                let mut pod = self.found_pod(effect)?;
                pod.status.extended_resource_claim_status = Some(write.status.clone());
                Ok(Some(self.put(Object::from(pod))))
            }
            raise::Write::KeepVolume(_) => panic!("there are no volumes here"),
            raise::Write::SelectNode(write) => {
                let mut object = self.found(effect)?;
                let annotation = (SELECTED_NODE_ANNOTATION.to_owned(), write.node.clone());
                object.metadata_mut().annotations = [annotation].into_iter().collect();
                Ok(Some(self.put(object)))
            }
            raise::Write::Bind(bind) => {
                let mut pod = self.found_pod(effect)?;
                if !pod.spec.node_name.is_empty() || pod.metadata.deletion_timestamp.is_some() {
                    return Err(Answer::Conflict);
                }
                pod.spec.node_name.clone_from(&bind.node);
                self.put(Object::from(pod));
                Ok(None)
            }
        }
    }

    /// `ValidateResourceClaimStatusUpdate`, as far as it matters here.
    fn write_status(
        &mut self,
        old: &ResourceClaim,
        claim: &ResourceClaim,
    ) -> Result<Object, Answer> {
        let (before, after) = (&old.status.allocation, &claim.status.allocation);
        let users = &claim.status.reserved_for;
        let refused = match (before, after) {
            (Some(before), Some(after)) if before != after => {
                Some("allocation: field is immutable")
            }
            (_, None) if !users.is_empty() => Some("reservedFor: may not be specified"),
            (None | Some(_), None | Some(_)) => None,
        };
        let more = users.len() > old.status.reserved_for.len();
        let refused = refused
            .or((users.len() > 256).then_some("reservedFor: too many"))
            .or((more && old.metadata.deletion_timestamp.is_some()).then_some("it is deleted"));
        if let Some(message) = refused {
            return Err(Answer::Refused { code: 422, message: message.to_owned() });
        }
        let status = claim.status.clone();
        Ok(self.put(Object::from(ResourceClaim { status, ..old.clone() })))
    }

    /// Whether a pod is there and has not ended.
    fn lives(&self, name: &str, uid: &str) -> bool {
        self.pod(name).is_some_and(|pod| pod.metadata.uid == uid && !pod.status.phase.is_terminal())
    }

    /// The resourceclaim controller and the garbage collector: users that are gone or have ended leave;
    /// what nobody uses any more is given up; claims of pods that are gone or have ended go.
    pub(crate) fn controllers(&mut self) {
        for claim in self.claims().cloned().collect::<Vec<_>>() {
            let (of, mut new) = (Object::from(claim.clone()).reference(), claim.clone());
            new.status.reserved_for.retain(|user| match user.resource.as_str() {
                "podgroups" => self.group(&claim.metadata.namespace, &user.name).is_some(),
                _ => self.lives(&user.name, &user.uid),
            });
            let owner = claim.metadata.controller().filter(|owner| owner.kind == "Pod");
            let orphan = owner.is_some_and(|owner| !self.lives(&owner.name, &owner.uid));
            if new.status.reserved_for.len() < claim.status.reserved_for.len() {
                if new.status.reserved_for.is_empty() {
                    new.status.allocation = None;
                }
                self.put(Object::from(new));
            }
            if orphan && claim.metadata.deletion_timestamp.is_none() {
                self.delete(&of);
            }
            if let Some(Object::ResourceClaim(left)) = self.objects.get(&of)
                && left.metadata.deletion_timestamp.is_some()
                && left.status.allocation.is_none()
            {
                self.remove(&of);
            }
        }
    }

    /// The kubelets: pods that are bound run, but for those that are refused; pods that are deleted end. A
    /// pod whose claims are not allocated and reserved for it does not start.
    pub(crate) fn kubelets(&mut self, refuses: impl Fn(&Pod) -> bool) {
        for mut pod in self.pods().cloned().collect::<Vec<_>>() {
            if pod.spec.node_name.is_empty() {
                continue;
            }
            if pod.metadata.deletion_timestamp.is_some() {
                if self.lingers {
                    continue;
                }
                self.remove(&Object::from(pod).reference());
            } else if pod.status.phase == PodPhase::Pending {
                let refused = refuses(&pod);
                if !refused && !self.has_claims(&pod) {
                    continue;
                }
                pod.status.phase = if refused { PodPhase::Failed } else { PodPhase::Running };
                self.put(Object::from(pod));
            }
        }
    }

    /// Whether each claim of a pod is allocated and reserved for it.
    pub(crate) fn has_claims(&self, pod: &Pod) -> bool {
        pod.spec.resource_claims.iter().all(|entry| {
            let of_template = pod.status.resource_claim_statuses.iter();
            let of_template = of_template.filter(|made| made.name == entry.name);
            let of_template = of_template.filter_map(|made| made.resource_claim_name.as_ref());
            let name = entry.resource_claim_name.iter().chain(of_template).next();
            let claim = name.and_then(|name| {
                self.objects.get(&named(Kind::ResourceClaim, &pod.metadata.namespace, name))
            });
            matches!(claim, Some(Object::ResourceClaim(claim))
                if claim.status.allocation.is_some()
                    && self.users(claim).iter().any(|user| user.metadata.uid == pod.metadata.uid))
        })
    }

    /// The pods that a claim is reserved for, by themselves or by their group.
    pub(crate) fn users(&self, claim: &ResourceClaim) -> Vec<&Pod> {
        let is_user = |pod: &&Pod| {
            let group = self.group_of(pod).map(|group| &group.metadata.uid);
            let mut users = claim.status.reserved_for.iter();
            users.any(|user| user.uid == pod.metadata.uid || Some(&user.uid) == group)
        };
        self.pods().filter(is_user).collect()
    }

    /// Devices that the claims of two pods on nodes hold, or of one pod twice.
    pub(crate) fn devices_twice(&self) -> Vec<String> {
        let mut holders: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for claim in self.claims() {
            if !self.users(claim).iter().any(|pod| !pod.spec.node_name.is_empty()) {
                continue;
            }
            for one in claim.status.allocation.iter().flat_map(|held| &held.devices.results) {
                let device = format!("{}/{}/{}", one.driver, one.pool, one.device);
                holders.entry(device).or_default().push(claim.metadata.name.clone());
            }
        }
        let twice = holders.into_iter().filter(|(_, of)| of.len() > 1);
        twice.map(|(device, of)| format!("{device}: {of:?}")).collect()
    }
}

pub(crate) fn named(kind: Kind, namespace: &str, name: &str) -> ObjectRef {
    let namespace = if kind.is_namespaced() { namespace } else { "" };
    ObjectRef { kind, namespace: namespace.to_owned(), name: name.to_owned() }
}

fn word(write: &Write) -> &'static str {
    match write {
        Write::Seat(raise::Write::CreateClaim(_)) => "create",
        Write::Seat(raise::Write::Finalize(_)) => "finalize",
        Write::Seat(raise::Write::Unprotect(_)) => "unprotect",
        Write::Seat(raise::Write::DeleteClaim(_)) => "delete",
        Write::Seat(raise::Write::ClaimStatus(claim)) if claim.status.allocation.is_none() => {
            "release"
        }
        Write::Seat(raise::Write::ClaimStatus(_)) => "allocate",
        Write::Seat(raise::Write::PodStatus(_)) => "say",
        Write::Seat(raise::Write::KeepVolume(_)) => "keep",
        Write::Seat(raise::Write::SelectNode(_)) => "select",
        Write::Seat(raise::Write::Bind(_)) => "bind",
        Write::CreatePlacement(_) => "create",
        Write::UpdatePlacement(_) => "update",
        Write::DeletePlacement(_) | Write::DeletePod(_) => "delete",
        Write::PodCondition(_) => "condition",
        Write::Event(_) => "event",
    }
}
