//! What an expression can read, and that it reads nothing else.

use phalanx_objects::resource;

use super::{DRIVER, compile, object};
use crate::{COST_LIMIT, Device, ReadSet, Reads};

fn set(all: bool, domains: &[&str], entries: &[(&str, &str)]) -> ReadSet {
    ReadSet {
        all,
        domains: domains.iter().map(|d| (*d).to_owned()).collect(),
        entries: entries.iter().map(|(d, i)| ((*d).to_owned(), (*i).to_owned())).collect(),
    }
}

fn reads(source: &str) -> Reads {
    compile(source).unwrap().reads().clone()
}

#[test]
fn written_paths_are_single_entries() {
    let found = reads(
        "device.attributes['a'].x == 1 && has(device.attributes['a'].y) && 'z' in \
         device.attributes['a'] && device.capacity['b']['m'].isInteger() && \
         device.attributes.c.?w.orValue(1) == 1 && device.attributes['a'][?'v'].hasValue()",
    );
    let entries = [("a", "x"), ("a", "y"), ("a", "z"), ("c", "w"), ("a", "v")];
    assert_eq!(found.attributes, set(false, &[], &entries));
    assert_eq!(found.capacity, set(false, &[], &[("b", "m")]));
    assert!(!found.driver && !found.allow_multiple_allocations);
    assert!(found.attributes.contains("a", "x") && !found.attributes.contains("c", "x"));
}

#[test]
fn bindings_are_followed() {
    let found = reads("cel.bind(d, device.attributes['a'], d.x == 1 || has(d.y))");
    assert_eq!(found.attributes, set(false, &[], &[("a", "x"), ("a", "y")]));
    let found = reads("cel.bind(d, device, d.attributes['a'].x == 1 && d.driver == '')");
    assert_eq!(found.attributes, set(false, &[], &[("a", "x")]));
    assert!(found.driver);
}

#[test]
fn maps_that_cannot_be_followed_are_read_whole() {
    let domain = reads("device.attributes['a'].exists(k, k == 'x')");
    assert_eq!(domain.attributes, set(false, &["a"], &[]));
    assert!(domain.attributes.contains("a", "anything"));
    assert_eq!(reads("'a' in device.attributes").attributes, set(false, &["a"], &[]));
    let key = reads("device.attributes['a'][device.driver] == 1");
    assert_eq!(key.attributes, set(false, &["a"], &[]));
    assert!(key.driver);
    assert!(reads("device.attributes[device.driver].x == 1").attributes.all);
    assert!(reads("device.attributes.all(d, true)").attributes.all);
    assert!(reads("size(device.capacity) == 1").capacity.all);
    assert!(reads("[device].size() == 1").attributes.all);
}

#[test]
fn nothing_is_read_by_a_constant() {
    assert_eq!(reads("1 < 2"), Reads::default());
    let alone = reads("device.allowMultipleAllocations");
    assert_eq!(alone, Reads { allow_multiple_allocations: true, ..Reads::default() });
}

#[test]
fn projections_agree_exactly_on_what_is_read() {
    let base = object();
    let mut other = object();
    other.attributes.insert("serial".to_owned(), resource::DeviceAttribute::Int(7));
    let mut changed = object();
    changed
        .attributes
        .insert("index".to_owned(), resource::DeviceAttribute::String("3".to_owned()));
    let device = |object| Device::new(DRIVER, object).unwrap();
    for (source, sees_serial, sees_index) in [
        ("device.attributes['gpu.example.com'].model == 'H100'", false, false),
        ("device.attributes['gpu.example.com'].index == 3", false, true),
        ("device.attributes['gpu.example.com'].?serial.hasValue()", true, false),
        ("device.attributes['gpu.example.com'].exists(k, k == 'serial')", true, true),
        ("device.attributes[device.driver].model == 'H100'", true, true),
        ("device.driver == ''", false, false),
    ] {
        let program = compile(source).unwrap();
        let project = |object| program.reads().project(&device(object));
        assert_eq!(project(&base) != project(&other), sees_serial, "{source}");
        assert_eq!(project(&base) != project(&changed), sees_index, "{source}");
        let evaluate = |object| program.evaluate(&device(object), COST_LIMIT);
        if !sees_serial {
            assert_eq!(evaluate(&base), evaluate(&other), "{source}");
        }
    }
}
