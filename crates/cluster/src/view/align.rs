//! Which wishes of `phalanx.dev/align` a placed pod has, and which of them its devices keep. The
//! placement itself is the engine's: here it is only named.

use phalanx_engine::{DeviceKey, Level, Links, Name, NodeKey, Place, PoolKey};
use phalanx_objects::meta::ObjectMeta;
use phalanx_objects::topology::{ALIGN_ANNOTATION, AlignLevel, AlignRule, Strength};
use phalanx_objects::{Kind, Object, ObjectRef};

use super::build::{claim_reference, home_of};
use super::schema::PodView;
use crate::lower::{ClaimInfo, GroupInfo, PodInfo};
use crate::words::{self, AlignWords};
use crate::world::World;

/// The notes on what is aligned and what is not. `unaligned` is how many preferred levels the engine
/// counts as not kept, where that is known of this pod alone.
pub(super) fn notes(
    world: &World,
    info: &GroupInfo,
    pod: &PodInfo,
    view: &PodView,
    unaligned: Option<u16>,
) -> Vec<String> {
    let mut found = AlignWords { unaligned, ..AlignWords::default() };
    let links = view.node.as_ref().and_then(|node| world.links(&NodeKey(Name::new(node))));
    for (claim, rule) in wishes(world, info, pod) {
        let own = |name: &str| claim.is_none_or(|claim| *claim.claim.key().0.name == *name);
        let devices: Vec<DeviceKey> =
            view.devices.iter().filter(|d| own(&d.claim)).map(device_key).collect();
        if devices.len() < 2 {
            continue;
        }
        let level = level(rule.level);
        let kept = rule.strength == Strength::Required
            || unaligned == Some(0)
            || links.is_some_and(|links| words::in_one(links, &devices, level));
        let levels = if kept { &mut found.kept } else { &mut found.unmet };
        if !levels.contains(&level) {
            levels.push(level);
        }
        let lost = devices.iter().filter(|d| kept && !is_located(world, links, d, level));
        for device in lost {
            if !found.lost.contains(&device.device) {
                found.lost.push(device.device.clone());
            }
        }
    }
    words::align_notes(&found)
}

/// Whether anything tells where a device sits at a level. Only accelerators have islands.
fn is_located(world: &World, links: Option<&Links>, device: &DeviceKey, level: Level) -> bool {
    let linked = |links: &Links| links.members.iter().any(|m| m.device.as_ref() == Some(device));
    let place = world.lowering().place(device);
    let told = |by: fn(&Place) -> bool| place.is_some_and(by);
    links.is_some_and(linked)
        || match level {
            Level::Island => true,
            Level::Switch | Level::Rail => false,
            Level::Root => told(|place| place.root.is_some()),
            Level::Numa => told(|place| place.numa.is_some() || place.root.is_some()),
        }
}

fn device_key(device: &super::schema::DeviceView) -> DeviceKey {
    let pool = PoolKey { driver: Name::new(&device.driver), pool: Name::new(&device.pool) };
    DeviceKey { pool, device: Name::new(&device.device) }
}

/// The wishes over all of the pod's devices, and those inside one claim.
fn wishes<'a>(
    world: &World,
    info: &GroupInfo,
    pod: &'a PodInfo,
) -> Vec<(Option<&'a ClaimInfo>, AlignRule)> {
    let mut all: Vec<(Option<&ClaimInfo>, AlignRule)> = Vec::new();
    let of_pod = of_pod(world, info, pod);
    all.extend(of_pod.into_iter().map(|rule| (None, rule)));
    for claim in &pod.claims {
        let key = claim.claim.key();
        let mut from = vec![claim_reference(key)];
        from.extend(claim.template.as_ref().map(|template| ObjectRef {
            kind: Kind::ResourceClaimTemplate,
            namespace: key.0.namespace.to_string(),
            name: template.to_string(),
        }));
        all.extend(first_of(world, &from).into_iter().map(|rule| (Some(claim), rule)));
    }
    all
}

/// A pod's own wish: on itself, else on its workload, else on its group.
fn of_pod(world: &World, info: &GroupInfo, pod: &PodInfo) -> Vec<AlignRule> {
    let Some(objects) = world.objects() else { return Vec::new() };
    let owner = info.owner.as_ref().map(|owner| ObjectRef {
        kind: crate::lower::workload_kind(owner),
        namespace: owner.object.namespace.to_string(),
        name: owner.object.name.to_string(),
    });
    let own = crate::lower::metas(objects, &home_of(pod), pod.role);
    let own = own.iter().map(|meta| &**meta);
    let groups = world.lowering().groups_of(pod);
    let above = owner.iter().chain(&groups);
    let above = above.filter_map(|object| objects.get(object)).map(Object::metadata);
    first_rules(own.chain(above))
}

/// The rules of the first of these objects that has any.
fn first_of(world: &World, objects: &[ObjectRef]) -> Vec<AlignRule> {
    let all = objects.iter().filter_map(|object| world.objects()?.get(object));
    first_rules(all.flat_map(metas))
}

/// The first rules that one of these carries.
fn first_rules<'a>(metas: impl Iterator<Item = &'a ObjectMeta>) -> Vec<AlignRule> {
    let mut rules =
        metas.filter_map(|meta| AlignRule::parse(meta.annotations.get(ALIGN_ANNOTATION)?).ok());
    rules.find(|rules| !rules.is_empty()).unwrap_or_default()
}

/// The metadata of a claim, or of a template of claims, that may carry a wish, that which counts first.
fn metas(object: &Object) -> Vec<&ObjectMeta> {
    if let Object::ResourceClaimTemplate(template) = object {
        return vec![&template.spec.metadata, &template.metadata];
    }
    object.device_claim().map(|_| object.metadata()).into_iter().collect()
}

fn level(level: AlignLevel) -> Level {
    match level {
        AlignLevel::Island => Level::Island,
        AlignLevel::Switch => Level::Switch,
        AlignLevel::Root => Level::Root,
        AlignLevel::Numa => Level::Numa,
        AlignLevel::Rail => Level::Rail,
    }
}
