//! What expressions cost on the H100, and at most, in Kubernetes' units: each row has its reason.

use phalanx_objects::resource;

use super::{DRIVER, compile, object};
use crate::{COST_LIMIT, Device, Environment, Gates, Program, Verdict, Version};

/// Expression, cost, estimate.
const COSTS: &[(&str, u64, u64)] = &[
    // A path costs one for its root and one for each part; what it holds has at most 64 characters.
    ("device.attributes['gpu.example.com'].model == 'H100'", 5, 5),
    (
        "device.attributes['gpu.example.com'].model == device.attributes['gpu.example.com'].model",
        9,
        15,
    ),
    // A capacity is compared at one unit.
    ("device.capacity['gpu.example.com'].memory == quantity('80Gi')", 6, 6),
    ("device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0", 7, 7),
    // A driver has at most 63 characters.
    ("device.driver.startsWith(device.driver)", 6, 11),
    ("device.driver.contains('gpu')", 4, 9),
    ("device.driver.matches('^gpu.*$')", 6, 16),
    ("device.driver.find('[a-z]+') == 'gpu'", 7, 17),
    ("device.driver.lowerAscii() == device.driver.upperAscii()", 10, 25),
    ("device.driver.replace('', 'ab').size() == 50", 7, 17),
    ("device.driver.replace('gpu', 'ab').size() == 14", 7, 17),
    ("device.driver.replace('a', 'bb').size() == 14", 7, 17),
    ("device.driver.split('.').size() == 3", 7, 17),
    ("device.driver.split('.', 2).join('-') == 'gpu-example.com'", 10, 1_844_674_407_370_955_281),
    ("device.driver.substring(1).trim().charAt(0) == 'p'", 8, 18),
    ("device.driver.indexOf('g') == 0", 4, 10),
    ("strings.quote(device.driver).size() == 17", 6, 11),
    ("'%s %s'.format([device.driver, 1]) == 'x'", 14, 14),
    ("string(bytes(device.driver)) == device.driver", 10, 44),
    // has() itself is free.
    ("has(device.attributes['gpu.example.com'].model)", 3, 3),
    ("has(device.attributes['gpu.example.com'].?none.x)", 2, 4),
    // Domains have at most 63 characters, identifiers 32, and there are 32 of each.
    ("device.attributes.exists(d, d == 'x')", 15, 195),
    ("device.attributes['gpu.example.com'].all(k, k.startsWith('x'))", 11, 164),
    ("device.capacity['gpu.example.com'].exists(k, k.size() > 3)", 11, 228),
    ("device.attributes['gpu.example.com'].modes.exists(m, m == 'mps')", 17, 389),
    ("device.attributes['gpu.example.com'].lanes.map(l, l + 1) == [17, 9]", 34, 922),
    ("device.attributes['gpu.example.com'].modes.filter(m, m != 'x').size() == 2", 37, 977),
    ("device.attributes['gpu.example.com'].exists_one(k, k == 'model')", 19, 133),
    // Constant lists are folded when evaluated, not when estimated.
    ("device.driver in ['a', 'b', 'c']", 2, 15),
    ("dyn(1) in dyn([1])", 1, 13),
    ("[1, 2, 3].all(x, x > 0)", 16, 26),
    ("[1, 2, 3].exists(x, x > 2)", 19, 29),
    ("[1, 2, 3].exists_one(x, x > 2)", 10, 24),
    ("[1, 2].map(x, x > 1, x * 2) == [4]", 20, 64),
    ("[1, 2].transformList(i, v, i + v) == [1, 3]", 32, 62),
    ("{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}", 7, 97),
    ("['a', 'b'].transformMapEntry(i, v, {v: i}) == {'a': 0, 'b': 1}", 70, 140),
    ("[3, 1].sortBy(x, -x) == [3, 1]", 51, 91),
    ("[3, 1].sort() == [1, 3]", 20, 40),
    ("['b', 'a'].sort() == ['a', 'b']", 20, 41),
    ("[1, 1].distinct() == [1]", 20, 40),
    ("[1, 2].reverse() == [2, 1]", 14, 34),
    ("[[1], [2]].flatten() == [1, 2]", 14, 54),
    ("[[1], [2]].flatten(3) == [1, 2]", 18, 58),
    ("[1, 2, 3].slice(1, 2) == [2]", 13, 33),
    ("lists.range(3).sum() == 3", 18, 18),
    ("['ab', 'c'].max() == 'c'", 1, 3_689_348_814_741_910_541),
    ("[1, 2].isSorted() && [1, 2].lastIndexOf(2) == 1", 5, 25),
    ("device.attributes['gpu.example.com'].modes.includes('mps')", 4, 68),
    ("device.attributes['gpu.example.com'].modes.isSorted()", 4, 11),
    (
        "sets.contains([1, 2], [2]) && sets.equivalent([1], [1]) && sets.intersects([1], [1, 2])",
        9,
        69,
    ),
    // A binding costs a list in the estimate, and at run time its value where it is used first.
    ("cel.bind(x, device.driver, x == x)", 6, 21),
    ("cel.bind(x, device.driver, true)", 0, 12),
    // optMap looks at its target twice.
    ("device.attributes['gpu.example.com'].?model.optMap(m, m.size()).orValue(0) == 4", 14, 25),
    ("device.attributes['gpu.example.com'].?none.optMap(m, m.size()).orValue(0) == 4", 6, 25),
    ("optional.of(1).optFlatMap(x, optional.of(x)).hasValue()", 7, 17),
    // Of a conditional the dearer branch counts.
    ("device.driver == 'x' ? device.driver.matches('a+') : true", 3, 12),
    ("(true ? device : device).driver == 'a'", 2, 3),
    // Two paths that grow from one share their last part upstream: the id becomes a value.
    ("cel.bind(d, device.attributes['a'], d.all(k, d.x == k))", 5, 431),
    // Libraries.
    ("isQuantity('1k') && isSemver('1.2.3') && semver('1.2.3') == semver('1.2.3')", 5, 5),
    ("device.attributes['gpu.example.com'].driverVersion.isGreaterThan(semver('550.0.0'))", 6, 6),
    ("ip('10.1.2.3') == ip('10.1.2.3') && isIP(device.driver)", 7, 12),
    ("ip.isCanonical('10.1.2.3') && ip('::1') != ip('::2')", 6, 1_844_674_407_370_955_268),
    (
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsIP(ip('10.1.2.3'))",
        6,
        12,
    ),
    (
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('::/0').containsCIDR(cidr('::/64'))",
        9,
        19,
    ),
    ("url('https://example.com/') == url('https://example.com/') && isURL('/a')", 6, 7),
    ("url('https://example.com/').getHost() == 'example.com'", 5, 5),
    ("format.uuid().validate(device.driver).hasValue() && format.uuid() == format.uuid()", 43, 237),
    ("timestamp('2024-01-01T00:00:00Z').getHours() == 0 && duration('1s') < duration('2s')", 3, 6),
    ("string(timestamp(0)) == '1970-01-01T00:00:00Z'", 2, 4),
    // A check of the authorization library costs 350,000, were there anything to check.
    ("dyn(1).check('get').allowed()", 350_001, 350_002),
    ("dyn(1).fieldSelector('a=b').check('get').allowed()", 350_112, 350_113),
    // What fails is paid for: both arguments where there are two, all that came before where it is more.
    ("1 / 0 + device.driver.size() == 1 || true", 6, 6),
    ("device.attributes['gpu.example.com'].none.isSorted() || true", 5, 11),
    ("'abc'.substring(5).format([device.driver]) == '' || true", 1, 14),
    ("[1, 2, 0].map(x, 1 / x).size() == 3 || true", 45, 65),
    // A comparison of texts by the shorter.
    ("'abcdefghijklmnopqrstuvwxyz' < 'abcdefghijklm'", 2, 2),
    (
        "'abcdefghijk' + 'l' == 'abcdefghijkl' && b'ab' + b'c' == b'abc' && [1] + [2] == [1, 2]",
        8,
        38,
    ),
    ("-device.attributes['gpu.example.com'].index + 1 > -5", 7, 7),
    ("device.allowMultipleAllocations || !device.allowMultipleAllocations", 5, 5),
    ("type(device.driver) == string", 4, 1_844_674_407_370_955_268),
];

#[test]
fn costs_and_estimates_are_upstreams() {
    let object = object();
    let device = Device::new(DRIVER, &object).unwrap();
    let mut wrong = Vec::new();
    for (source, cost, estimate) in COSTS {
        let program = compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        let found = (program.evaluate(&device, COST_LIMIT).cost, program.estimate());
        if found != (*cost, *estimate) {
            wrong.push(format!("{source}: {found:?}, not {:?}", (cost, estimate)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The compatibility version of an API server is one before its own, and gates count.
#[test]
fn new_expressions_know_what_the_gates_allow() {
    let none = Gates::default();
    let lists = Gates { list_type_attributes: true, ..none };
    let sharing = Gates { consumable_capacity: true, ..none };
    let compiles = |source: &str, version: u32, gates: Gates| {
        let environment = Environment::new_expressions(Version::new(1, version), gates);
        Program::compile(source, &environment).is_ok()
    };
    for (source, plain, with_lists, with_sharing) in [
        ("device.attributes['a'].x.exists(v, v == 1)", false, true, false),
        ("device.attributes['a'].x.includes(1)", false, true, false),
        ("device.attributes['a'].x", true, true, true),
        ("device.attributes['a'].exists(k, k == 'x')", true, true, true),
        ("device.allowMultipleAllocations", false, false, true),
        ("[3, 1].sort() == [1, 3]", true, true, true),
    ] {
        let found = [none, lists, sharing].map(|gates| compiles(source, 37, gates));
        assert_eq!(found, [plain, with_lists, with_sharing], "{source}");
        assert!(compile(source).is_ok(), "{source}");
    }
    // cel-go's lists came with 1.34, to the API server one version later.
    assert!(!compiles("[3, 1].sort() == [1, 3]", 34, none));
    let old = Environment::stored(Version::new(1, 35));
    let macros = Program::compile("device.attributes['a'].x.exists(v, v == 1)", &old);
    assert!(macros.unwrap_err().hint.unwrap().contains("DRAListTypeAttributes"));
}

#[test]
fn a_derived_attribute_has_the_type_of_an_attribute() {
    use resource::DeviceAttribute::{Bool, Bools, Int, Ints, String, Strings, Version, Versions};
    let environment = Environment::default();
    let object = object();
    let device = Device::new(DRIVER, &object).unwrap();
    let of = |source: &str| {
        let program = Program::compile_attribute(source, &environment).unwrap();
        program.evaluate_attribute(&device, COST_LIMIT).value.map_err(|error| error.to_string())
    };
    let attribute = "device.attributes['gpu.example.com']";
    assert_eq!(of(&format!("{attribute}.model")), Ok(String("H100".to_owned())));
    assert_eq!(of(&format!("{attribute}.index + 1")), Ok(Int(4)));
    assert_eq!(of(&format!("{attribute}.lanes")), Ok(Ints(vec![16, 8])));
    assert_eq!(of("[true]"), Ok(Bools(vec![true])));
    assert_eq!(of("1 > 2"), Ok(Bool(false)));
    assert_eq!(of("[].map(x, x)"), Ok(Strings(Vec::new())));
    assert_eq!(of("semver('1.2.3')"), Ok(Version("1.2.3".to_owned())));
    assert_eq!(of("[semver('1.2.3')]"), Ok(Versions(vec!["1.2.3".to_owned()])));
    assert_eq!(
        of("[dyn(1), dyn('b')]").unwrap_err(),
        "expected list element at index 1 to be int, got string"
    );
    assert_eq!(of("dyn(1.5)").unwrap_err(), "unsupported CEL return type: float64");
    assert_eq!(of("optional.of(dyn(1)).or(optional.none()).value()"), Ok(Int(1)));
}

#[test]
fn a_derived_attribute_of_another_type_is_refused() {
    let environment = Environment::default();
    for (source, name) in
        [("device.attributes", "map("), ("1.5", "double"), ("[1.5]", "list(double)")]
    {
        let error = Program::compile_attribute(source, &environment).unwrap_err();
        assert_eq!(error.kind, crate::CompileErrorKind::NotAttribute, "{source}");
        assert!(error.message.contains(name), "{source}: {error}");
    }
    let server = Environment::new_expressions(Version::NEWEST, Gates::default());
    assert!(Program::compile_attribute("[1]", &server).is_err());
    assert!(Program::compile_attribute("1", &server).is_ok());
}

#[test]
fn the_work_that_costs_do_not_see_is_limited() {
    let object = object();
    let device = Device::new(DRIVER, &object).unwrap();
    let program = compile("lists.range(1000000).map(x, x).size() == 1").unwrap();
    let verdict = program.evaluate(&device, COST_LIMIT).verdict;
    assert!(matches!(verdict, Verdict::Error(error) if error.hint().is_some()));
}
