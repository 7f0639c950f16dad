//! Why the H100 is not selected.

use super::{DRIVER, compile, object};
use crate::Device;

fn explain(source: &str) -> Vec<String> {
    let object = object();
    let device = Device::new(DRIVER, &object).unwrap();
    let steps = compile(source).unwrap().explain(&device);
    for step in &steps {
        assert_eq!(&source[step.range.0..step.range.1], step.text);
    }
    steps.iter().map(ToString::to_string).collect()
}

#[test]
fn the_value_that_failed_is_named() {
    assert_eq!(
        explain("device.capacity[\"gpu.example.com\"].memory.compareTo(quantity(\"90Gi\")) >= 0"),
        ["`device.capacity[\"gpu.example.com\"].memory.compareTo(quantity(\"90Gi\")) >= 0` is \
          false: memory is 80Gi"]
    );
    assert_eq!(
        explain("device.attributes['gpu.example.com'].model == 'A100'"),
        ["`device.attributes['gpu.example.com'].model == 'A100'` is false: model is \"H100\""]
    );
    assert_eq!(
        explain("device.driver == 'x'"),
        ["`device.driver == 'x'` is false: driver is \"gpu.example.com\""]
    );
}

#[test]
fn only_the_conjuncts_that_are_false_are_named() {
    assert_eq!(
        explain(
            "device.driver == 'gpu.example.com' && device.attributes[device.driver].index == 4 \
             && (true && device.allowMultipleAllocations)"
        ),
        [
            "`device.attributes[device.driver].index == 4` is false: index is 3",
            "`device.allowMultipleAllocations` is false: allowMultipleAllocations is false",
        ]
    );
}

#[test]
fn all_terms_of_a_disjunction_are_named() {
    assert_eq!(
        explain("device.driver == 'a' || device.driver == 'b'"),
        [
            "`device.driver == 'a'` is false: driver is \"gpu.example.com\"",
            "`device.driver == 'b'` is false: driver is \"gpu.example.com\"",
        ]
    );
}

#[test]
fn an_error_names_the_part_that_has_no_value() {
    assert_eq!(
        explain("device.driver != 'x' && device.attributes['gpu.example.com'].uuid == 'a'"),
        ["`device.attributes['gpu.example.com'].uuid` has no value: no such key: uuid"]
    );
    // Another conjunct decides: the error does not matter.
    assert_eq!(
        explain("device.attributes['x'].y && device.driver == 'x'"),
        ["`device.driver == 'x'` is false: driver is \"gpu.example.com\""]
    );
}

#[test]
fn bindings_branches_and_macros_are_looked_into() {
    assert_eq!(
        explain("cel.bind(d, device.attributes['gpu.example.com'], d.healthy && d.index > 5)"),
        ["`d.index > 5` is false: index is 3"]
    );
    assert_eq!(
        explain("device.driver == 'x' ? true : device.attributes['gpu.example.com'].index == 1"),
        ["`device.attributes['gpu.example.com'].index == 1` is false: index is 3"]
    );
    assert_eq!(
        explain("device.attributes['gpu.example.com'].lanes.all(l, l == 16)"),
        ["`l == 16` is false: l is 8"]
    );
    assert_eq!(
        explain("device.attributes['gpu.example.com'].lanes.exists(l, l == 4)"),
        ["`device.attributes['gpu.example.com'].lanes.exists(l, l == 4)` is false: lanes is [16, \
          8]"]
    );
    assert_eq!(
        explain("has(device.attributes['gpu.example.com'].uuid)"),
        ["`has(device.attributes['gpu.example.com'].uuid)` is false: the device has no uuid"]
    );
    assert_eq!(
        explain("device.attributes['gpu.example.com'].?uuid.orValue('none') == 'a'"),
        [
            "`device.attributes['gpu.example.com'].?uuid.orValue('none') == 'a'` is false: the device \
          has no uuid"
        ]
    );
}

#[test]
fn what_selects_needs_no_explanation() {
    assert!(explain("true").is_empty());
    assert!(explain("device.attributes['x'].y || true").is_empty());
}
