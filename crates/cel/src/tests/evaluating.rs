//! What expressions say about the H100.

use phalanx_objects::resource;

use super::{DRIVER, answer, compile, object};
use crate::{COST_LIMIT, Device, Verdict};

/// Expressions that select it.
const YES: &[&str] = &[
    "true",
    "device.driver == 'gpu.example.com'",
    "device.attributes['gpu.example.com'].model == 'H100'",
    "device.attributes[device.driver].model == 'H100'",
    "device.attributes[device.driver]['mod' + 'el'] == 'H100'",
    "device.attributes['gpu.example.com'].healthy",
    "device.attributes['gpu.example.com'].index + 1 == 4",
    "device.attributes['resource.kubernetes.io'].pcieRoot.startsWith('pci')",
    "device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0",
    "device.capacity['gpu.example.com'].memory == quantity('80Gi')",
    "device.capacity['other.example.com'].slots.isLessThan(quantity('7.5'))",
    "device.capacity['gpu.example.com'].memory.sub(quantity('16Gi')).compareTo(quantity('64Gi')) == 0",
    "device.capacity['gpu.example.com'].memory.asInteger() == 85899345920",
    "sign(quantity('-1')) == -1 && quantity('1500m').asApproximateFloat() == 1.5",
    "isQuantity('1k') && !isQuantity('1kk') && !quantity('1500m').isInteger()",
    "device.attributes['gpu.example.com'].driverVersion.isGreaterThan(semver('550.0.0'))",
    "device.attributes['gpu.example.com'].driverVersion == semver('550.54.15+other')",
    "semver('v1.2', true) == semver('1.2.0') && semver('01.2.3', true).major() == 1",
    "!isSemver('1.2') && isSemver('v1.2', true) && !isSemver('1.2-a', true)",
    "semver('1.0.0-alpha').isLessThan(semver('1.0.0')) && semver('1.2.3').patch() == 3",
    "has(device.attributes['gpu.example.com'].model)",
    "!has(device.attributes['gpu.example.com'].none)",
    "has(device.attributes.anything) && !('anything' in device.attributes)",
    "'gpu.example.com' in device.attributes && 'model' in device.attributes[device.driver]",
    "device.attributes['unknown'].size() == 0 && size(device.attributes) == 2",
    "device.attributes['gpu.example.com'].?none.orValue('x') == 'x'",
    "device.attributes[?'unknown'].?none.orValue(1) == 1",
    "device.attributes['gpu.example.com'].?model.optMap(m, m.size()).orValue(0) == 4",
    "optional.none().or(optional.of(1)).value() == 1 && !optional.none().hasValue()",
    "optional.of(1).or(optional.of(2)).value() == 1 && optional.of(1).or(optional.none()).hasValue()",
    "-device.attributes['gpu.example.com'].index == -3",
    "optional.of(2).optFlatMap(x, x > 1 ? optional.of(x) : optional.none()).hasValue()",
    "optional.ofNonZeroValue('') == optional.none()",
    "cel.bind(d, device.attributes['gpu.example.com'], d.model == 'H100' && d.index == 3)",
    "cel.bind(x, 1 / 0, true)",
    "device.attributes['gpu.example.com'].lanes.exists(x, x == 8)",
    "device.attributes['gpu.example.com'].modes.all(m, m.startsWith('m'))",
    "'mig' in device.attributes['gpu.example.com'].modes",
    "device.attributes['gpu.example.com'].modes.includes('mps')",
    "device.attributes['gpu.example.com'].model.includes('H100')",
    "device.attributes['gpu.example.com'].exists(k, k == 'model')",
    "device.attributes.all(d, d.contains('.'))",
    "device.attributes['gpu.example.com'].exists(k, v, k == 'index' && v == 3)",
    "[5, 6].all(i, v, v == i + 5) && [1, 2, 3].exists_one(x, x > 2)",
    "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6] && [1, 2].filter(x, x > 1) == [2]",
    "[1, 2].transformList(i, v, i + v) == [1, 3]",
    "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v * 10) == {'b': 20}",
    "{'a': [1]}.a[0] == 1 && {1: 'x'}[1] == 'x' && {'a': 1}.exists(k, k == 'a')",
    "true || device.attributes['x'].y && false",
    "device.attributes['x'].y || true",
    "!(false && device.attributes['x'].y) && !(device.attributes['x'].y && false)",
    "false ? 1 / 0 == 1 : true",
    "dyn(1) == 1.0 && 1u == dyn(1) && dyn(1) != dyn('a') && 1 < 1.5 && 2u > 1.5 && 1u <= 1",
    "!(9007199254740993 > 9007199254740992.0) && !(1 in [2]) && dyn(1) in [1.0]",
    "{'a': 1, 'a': 2} == {'a': 2} && {1.5: 1}.size() == 1 && !('a' in [])",
    "device.attributes.`gpu.example.com`.model == 'H100' && [1, 2].exists_one(i, v, v == 2)",
    "'a'.matches('\\\\141') && 'a{,2}'.matches('^a{,2}$') && !'a'.matches('\\\\<a\\\\>')",
    "'α'.matches('^\\\\p{Greek}$') && '\u{1f}'.matches('\\\\x{1F}') && 'a'.matches('(?P<1>\\\\p{^Greek})')",
    "'aa'.matches('^((a{2}){500}|a{2}){1}$') && .size('a') == 1 && .device.driver != ''",
    "string(1e6) == '1e+06' && string(123456.5) == '123456.5' && [dyn(1), dyn('a')].max() == 1",
    "-7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1 && 2 - -1 == 3 && --1 == 1",
    "'a' + 'b' == 'ab' && b'a' + b'b' == b'ab' && [1] + [2] == [1, 2]",
    "'βγ'.size() == 2 && size(b'\\xff') == 1 && [1, 2].size() == 2 && size({'a': 1}) == 1",
    "'βγδ'.substring(1) == 'γδ' && 'βγδ'.substring(1, 2) == 'γ' && 'βγ'.charAt(1) == 'γ'",
    "'βγ'.charAt(2) == '' && 'abcabc'.indexOf('c', 3) == 5 && 'abcabc'.lastIndexOf('a') == 3",
    "'abc'.indexOf('') == 0 && 'abc'.lastIndexOf('') == 3 && 'abc'.indexOf('x') == -1",
    "'a-b-c'.split('-', 2) == ['a', 'b-c'] && 'abc'.split('') == ['a', 'b', 'c']",
    "''.split('') == [] && 'ab'.split('x', 0) == [] && ['a', 'b'].join('-') == 'a-b'",
    "'aXbX'.replace('X', '-', 1) == 'a-bX' && 'ab'.replace('', '.') == '.a.b.'",
    "' a\\t'.trim() == 'a' && 'Aé'.lowerAscii() == 'aé' && 'aé'.upperAscii() == 'Aé'",
    "strings.quote('a\"') == '\"a\\\\\"\"' && 'ab'.endsWith('b') && matches('ab', 'b$')",
    "'h100 b200'.find('[0-9]+') == '100' && 'h1 b2'.findAll('[0-9]') == ['1', '2']",
    "'h1 b2'.findAll('[0-9]', 1) == ['1'] && 'x'.find('y') == ''",
    "!'٣'.matches('\\\\d') && !'é'.matches('^\\\\w$') && 'a.b'.matches('^\\\\Qa.b\\\\E$')",
    "'a]'.matches('[]]') && 'a-b c'.matches('\\\\bb\\\\b') && '[['.matches('^[[]+$')",
    "'x&y'.matches('^[x&&y]+$') && ' \\t'.matches('^[\\\\s]+$') && '_'.matches('[[:punct:]]')",
    "[1, 3, 2].max() == 3 && [1.5, 1.0].min() == 1.0 && [1, 2].sum() == 3 && [].sum() == 0",
    "[1, 2].isSorted() && ![2, 1].isSorted() && [1, 2, 1].lastIndexOf(1) == 2",
    "[3, 1].sort() == [1, 3] && [1, 1].distinct() == [1] && [1, 2].reverse() == [2, 1]",
    "[[1], [2]].flatten() == [1, 2] && lists.range(2) == [0, 1] && [1, 2, 3].slice(1, 2) == [2]",
    "sets.contains([1, 2], [2]) && sets.equivalent([1], [1, 1]) && sets.intersects([1], [1, 2])",
    "int('12') == 12 && int(1.9) == 1 && uint(1) == 1u && double('1.5') == 1.5 && string(1) == '1'",
    "bool('true') && bytes('a') == b'a' && string(1.5) == '1.5' && string(1e21) == '1e+21'",
    "type(1) == int && type('') == string && type(int) == type && type(null) == null_type",
    "null == null && dyn(null) != dyn(1) && [?optional.none(), 1] == [1]",
    "device.allowMultipleAllocations == false",
    "device.attributes == device.attributes && device.attributes['unknown'] == {}",
    // Upstream's quirk: nothing is equal to a computed quantity on the right, so all differ.
    "quantity('1') != quantity('1').add(0) && quantity('1').add(0) == quantity('1')",
];

/// Expressions without an answer, and what is said.
const FAILING: &[(&str, &str)] = &[
    ("device.attributes['gpu.example.com'].none == 1", "no such key: none"),
    ("device.attributes['unknown'].x == 1", "no such key: x"),
    ("device.attributes['gpu.example.com'].model.x == 1", "no such key: x"),
    ("device.attributes['gpu.example.com'].modes[2] == ''", "index out of bounds: 2"),
    ("device.attributes['gpu.example.com'].model[0] == ''", "no such key: 0"),
    ("'abc'.charAt(4) == ''", "index out of range: 4"),
    ("'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
    ("1 / 0 == 1", "division by zero"),
    ("1 % 0 == 1", "modulus by zero"),
    ("9223372036854775807 + 1 > 0", "integer overflow"),
    ("-9223372036854775808 / -1 > 0", "integer overflow"),
    ("0u - 1u > 0u", "unsigned integer overflow"),
    ("device.attributes['gpu.example.com'].index + 'a' == 'b'", "no such overload"),
    ("device.attributes['gpu.example.com'].model > 1", "no such overload"),
    ("quantity('1') == quantity('1').add(0)", "no such overload"),
    ("dyn(semver('1.0.0')) == dyn('1.0.0')", "no such overload"),
    (
        "device.attributes['gpu.example.com'].index.exists(x, x > 0)",
        "got 'types.Int', expected iterable type",
    ),
    (
        "device.attributes['gpu.example.com'].index",
        "CEL result of type int could not be converted to bool",
    ),
    ("false || device.attributes['x'].y", "no such key: y"),
    ("device.attributes['x'].y || device.attributes['x'].z", "no such key: y"),
    ("[1, 2].all(x, x / 0 == 1)", "division by zero"),
    ("[0, 1].exists(x, 1 / x == 2)", "division by zero"),
    ("quantity('abc').isInteger()", "`abc` is not a quantity"),
    ("semver('1') == semver('1')", "No Major.Minor.Patch elements found"),
    ("[].map(x, x).max() == 1", "max called on empty list"),
    ("optional.none().value() == 1", "optional.none() dereference"),
    ("{'a': 1}['b'] == 1", "no such key: b"),
    ("cel.bind(x, 1 / 0, x == 1)", "division by zero"),
    ("'a'.find(device.driver + '[') == ''", "error parsing regexp"),
];

#[test]
fn the_h100_is_selected() {
    let answer = |source| compile(source).map_or_else(|e| e.to_string(), |_| answer(source));
    let wrong: Vec<_> = YES.iter().map(|s| (s, answer(s))).filter(|(_, a)| a != "yes").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn failures_say_what_failed() {
    for (source, message) in FAILING {
        let found = answer(source);
        assert!(found.starts_with(message), "{source}: {found}");
    }
}

#[test]
fn false_is_not_an_error() {
    for source in ["false", "device.driver == 'x'", "[1].exists(x, x > 1)", "!(1 in [1])"] {
        assert_eq!(answer(source), "no", "{source}");
    }
}

#[test]
fn an_error_points_at_its_part_and_has_a_hint() {
    let object = object();
    let device = Device::new(DRIVER, &object).unwrap();
    let source = "true && device.attributes['x'].y == 1";
    let Verdict::Error(error) = compile(source).unwrap().evaluate(&device, COST_LIMIT).verdict
    else {
        panic!("there is no such attribute")
    };
    assert_eq!(&source[error.range.0..error.range.1], "device.attributes['x'].y");
    assert!(error.hint().unwrap().contains("has()"));
}

#[test]
fn an_unusable_attribute_makes_the_device_unusable() {
    let bad = |json: &str| serde_json::from_str::<resource::Device>(json).unwrap();
    let version = bad(r#"{"name": "d", "attributes": {"v": {"version": "1.2"}}}"#);
    let error = Device::new(DRIVER, &version).unwrap_err();
    assert_eq!(
        error.to_string(),
        "attribute v: parse semantic version: No Major.Minor.Patch elements found"
    );
    let empty = bad(r#"{"name": "d", "attributes": {"e": {}}}"#);
    let error = Device::new(DRIVER, &empty).unwrap_err();
    assert_eq!(error.to_string(), "attribute e: unsupported attribute value");
}

#[test]
fn a_name_with_its_domain_comes_before_one_without() {
    let json = r#"{"name": "d", "attributes": {
        "gpu.example.com/model": {"string": "with"}, "model": {"string": "without"}}}"#;
    let object: resource::Device = serde_json::from_str(json).unwrap();
    let device = Device::new(DRIVER, &object).unwrap();
    let program = compile("device.attributes['gpu.example.com'].model == 'with'").unwrap();
    assert_eq!(program.evaluate(&device, COST_LIMIT).verdict, Verdict::Yes);
}

#[test]
fn the_limit_of_cost_is_the_callers() {
    let object = object();
    let device = Device::new(DRIVER, &object).unwrap();
    let program = compile("device.driver == 'gpu.example.com'").unwrap();
    // Two steps of the path, and a tenth of 15 characters, rounded up.
    assert_eq!(program.evaluate(&device, 4).cost, 4);
    assert_eq!(program.evaluate(&device, 4).verdict, Verdict::Yes);
    assert!(matches!(program.evaluate(&device, 3).verdict, Verdict::Error(_)));
}
