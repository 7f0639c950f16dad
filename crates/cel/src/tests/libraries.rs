//! The libraries of Kubernetes, function by function: values, faults, and traps that were found by
//! comparing random expressions with upstream's own answers.

use super::{answer, compile};

/// Expressions that are true.
const YES: &[&str] = &[
    // Durations: nanoseconds, any number of units, fractions, both signs.
    "duration('1h30m') == duration('90m') && duration('-1.5s') < duration('0')",
    "duration('1us') == duration('1µs') && duration('.5s') == duration('500ms')",
    "duration('+1ns') + duration('1ms') == duration('1000001ns')",
    "duration(duration('1s')) - duration('2s') == duration('-1s')",
    "string(duration('1h2m3.5s')) == '3723.5s' && string(duration('1ns')) == '0.000000001s'",
    "int(duration('1s')) == 1000000000 && duration('100h').getHours() == 100",
    "duration('90s').getMinutes() == 1 && duration('90s').getSeconds() == 90",
    "duration('1500us').getMilliseconds() == 1 && duration('-90m').getHours() == -1",
    "[duration('1s'), duration('2s')].sum() == duration('3s')",
    "duration('9223372036854775807ns') > duration('-9223372036854775808ns')",
    // Time stamps: an offset shows in the text alone, parts are those of UTC.
    "timestamp('2024-02-29T12:30:45.678+02:00').getHours() == 10",
    "string(timestamp('2024-02-29T12:30:45.670+02:00')) == '2024-02-29T12:30:45.67+02:00'",
    "string(timestamp('2024-01-01T00:00:00+00:00')) == '2024-01-01T00:00:00Z'",
    "timestamp('2024-01-01T01:00:00+01:00') == timestamp('2024-01-01T00:00:00,000Z')",
    "timestamp(0).getFullYear() == 1970 && timestamp(0).getMonth() == 0",
    "timestamp(0).getDate() == 1 && timestamp(0).getDayOfMonth() == 0",
    "timestamp('2024-12-31T00:00:00Z').getDayOfYear() == 365 && timestamp(0).getDayOfWeek() == 4",
    "timestamp('2023-03-01T00:00:00Z') - timestamp('2023-02-28T00:00:00Z') == duration('24h')",
    "timestamp('1900-03-01T00:00:00Z') - timestamp('1900-02-28T00:00:00Z') == duration('24h')",
    "timestamp(59).getSeconds() == 59 && timestamp(3599).getMinutes() == 59",
    "timestamp('1969-12-31T23:59:59.999Z').getMilliseconds() == 999",
    "timestamp(-1) + duration('1s') == timestamp(0) && duration('1s') + timestamp(-1) == timestamp(0)",
    "timestamp(0) - duration('1ms') == timestamp('1969-12-31T23:59:59.999Z')",
    "string(timestamp(-62135596800)) == '0001-01-01T00:00:00Z' && int(timestamp(7)) == 7",
    "string(timestamp(253402300799)) == '9999-12-31T23:59:59Z'",
    "timestamp('2024-07-01T00:00:00Z').getHours('America/New_York') == 20",
    "timestamp('2024-01-01T00:00:00Z').getHours('America/New_York') == 19",
    "timestamp('9999-12-31T23:59:59Z').getHours('Europe/Berlin') == 0",
    "timestamp(0).getMinutes('-01:30') == 30 && timestamp(0).getHours('02:00') == 2",
    "timestamp(0).getHours('') == 0 && timestamp(0).getHours('UTC') == 0",
    "timestamp(timestamp(5)) == timestamp(5) && [timestamp(1), timestamp(0)].max() == timestamp(1)",
    "!(timestamp(0) < timestamp(-5)) && optional.ofNonZeroValue(duration('0')) == optional.none()",
    // The types have names.
    "type(duration('1s')) == google.protobuf.Duration && type(ip('::1')) == net.IP",
    "type(timestamp(0)) == google.protobuf.Timestamp && type(cidr('::/0')) == net.CIDR",
    "type(optional.none()) == optional_type && type(device) == type({})",
    // Addresses and networks.
    "ip('10.1.2.3').family() == 4 && ip('::1').family() == 6 && string(ip('FE80::0:1')) == 'fe80::1'",
    "isIP('1.2.3.4') && !isIP('1.2.3.04') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0')",
    "ip.isCanonical('::1') && !ip.isCanonical('0::1') && ip('1.2.3.4') == ip('1.2.3.4')",
    "ip('0.0.0.0').isUnspecified() && ip('127.9.9.9').isLoopback() && ip('::1').isLoopback()",
    "ip('224.0.0.5').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()",
    "ip('169.254.1.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()",
    "ip('10.0.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
    "!ip('224.0.0.5').isGlobalUnicast() && !ip('224.1.0.5').isLinkLocalMulticast()",
    "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('::/0').containsCIDR(cidr('fe80::/10'))",
    "!cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8') && !cidr('0.0.0.0/0').containsIP('::1')",
    "cidr('10.1.2.3/24').ip() == ip('10.1.2.3') && string(cidr('10.1.2.3/24').masked()) == '10.1.2.0/24'",
    "cidr('10.0.0.0/8').prefixLength() == 8 && cidr('10.0.0.0/8') != cidr('10.0.0.0/9')",
    "isCIDR('10.0.0.0/0') && !isCIDR('10.0.0.0/08') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0')",
    // URLs.
    "url('https://u:p@h.com:80/a%20b?x=1&x=2&y#f').getHost() == 'h.com:80'",
    "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getPort() == '80'",
    "url('HTTPS://h/').getScheme() == 'https' && url('/a b').getEscapedPath() == '/a%20b'",
    "url('https://h/a%2Fb').getEscapedPath() == '/a%2Fb' && url('https://h').getEscapedPath() == ''",
    "url('https://h/?x=1&x=a+b&y').getQuery() == {'x': ['1', 'a b'], 'y': ['']}",
    "isURL('/a') && isURL('mailto:x@y') && !isURL('a/b') && !isURL('https://a:b/') && !isURL('')",
    "!isURL('https://a b/') && !isURL('/%zz') && url('https://h/a') == url('HTTPS://h/a')",
    "url('https://h/a') != url('https://h/b') && url('mailto:x@y').getHost() == ''",
    // Named formats.
    "!format.dns1123Label().validate('my-name').hasValue() && format.dns1123Label().validate('a.b').hasValue()",
    "format.dns1123Label().validate('-a').hasValue() && format.dns1035Label().validate('1a').hasValue()",
    "!format.dns1123Subdomain().validate('a.b-c').hasValue() && format.dns1123Subdomain().validate('a..b').hasValue()",
    "!format.dns1123LabelPrefix().validate('ab-').hasValue() && format.dns1123Label().validate('ab-').hasValue()",
    "!format.dns1035LabelPrefix().validate('ab-').hasValue() && !format.dns1123SubdomainPrefix().validate('a.b-').hasValue()",
    "!format.qualifiedName().validate('a.b/C_d').hasValue() && format.qualifiedName().validate('/x').hasValue()",
    "format.qualifiedName().validate('').value().size() == 2 && format.qualifiedName().validate('a/b/c').hasValue()",
    "!format.labelValue().validate('').hasValue() && format.labelValue().validate('a b').hasValue()",
    "!format.uri().validate('/a').hasValue() && format.uri().validate('a').hasValue()",
    "!format.uuid().validate('00000000-0000-0000-0000-00000000000A').hasValue() && format.uuid().validate('0').hasValue()",
    "!format.byte().validate('YQ==').hasValue() && format.byte().validate('YQ=').hasValue()",
    "!format.date().validate('2024-02-29').hasValue() && format.date().validate('2023-02-29').hasValue()",
    "!format.datetime().validate('2024-01-01T00:00:00.5Z').hasValue() && format.datetime().validate('2024-01-01T24:00:00Z').hasValue()",
    "format.named('uuid').value() == format.uuid() && !format.named('none').hasValue()",
    // Texts made by clauses. The precision of an exponent is a width upstream.
    "'%s|%d|%x|%X|%o|%b|%%'.format(['a', 7, 255, 'hé', 8, true]) == 'a|7|ff|68C3A9|10|1|%'",
    "'%.2f|%f'.format([1234.567, -0.5]) == '1,234.57|-0.500000'",
    "'%e|%.20e'.format([1234.5, 0.00012]) == '1.234500×10⁰³|      1.200000×10⁻⁰⁴'",
    "'%f|%f'.format(['NaN', '-Infinity']) == 'NaN|-∞'",
    "'%s'.format([[1, 'a', 1.5, null, {'b': 1, 'a': [2u]}, duration('1s')]]) == '[1, \"a\", 1.500000, null, {\"a\":[2], \"b\":1}, duration(\"1s\")]'",
    "'%s %s'.format([timestamp(0), type(1)]) == '1970-01-01T00:00:00Z int'",
    "'%x %b'.format([-255, -5]) == '-ff -101' && 'a'.format([]) == 'a'",
    // Lists.
    "[3, 1, 2].sortBy(x, -x) == [3, 2, 1] && ['bb', 'a'].sortBy(s, s.size()) == ['a', 'bb']",
    "['a', 'b'].transformMapEntry(i, v, {v: i}) == {'a': 0, 'b': 1}",
    "['a', 'b'].transformMapEntry(i, v, i > 0, {v: i}) == {'b': 1}",
    "[1, 2].first().value() == 1 && [1, 2].last() == optional.of(2) && ![].first().hasValue()",
    "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(1)].unwrapOpt() == [1]",
    "lists.range(3).map(x, x * x) == [0, 1, 4] && [[[1]], [[2]]].flatten(2) == [1, 2]",
    // What `cel.bind` binds is computed where it is used, once.
    "cel.bind(x, 1 / 0, true) && cel.bind(x, 1 / 0, true || x == 1)",
    // A body of optFlatMap whose type is not known makes the whole so.
    "optional.of(1).optFlatMap(x, dyn(true))",
    // An optional bool is a bool.
    "optional.of(dyn(true)).value()",
    // What can't be compared with a sum of quantities: upstream wraps the least integer.
    "quantity('1').sub(-9223372036854775808).compareTo(quantity('0')) == -1",
];

#[test]
fn the_libraries_give_upstreams_values() {
    let of = |source| compile(source).map_or_else(|e| e.to_string(), |_| answer(source));
    let wrong: Vec<_> = YES.iter().map(|s| (s, of(s))).filter(|(_, a)| a != "yes").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Expressions without an answer, and how their error begins.
const FAILING: &[(&str, &str)] = &[
    ("duration('9223372036s') + duration('1s') > duration('0')", "integer overflow"),
    ("duration('-9223372036854775808ns') - duration('1ns') > duration('0')", "integer overflow"),
    ("timestamp('9999-12-31T23:59:59Z') + duration('1s') > timestamp(0)", "timestamp overflow"),
    ("timestamp('0001-01-01T00:00:00Z') - duration('1s') > timestamp(0)", "timestamp overflow"),
    (
        "timestamp('9999-12-31T00:00:00Z') - timestamp('0001-01-01T00:00:00Z') > duration('0')",
        "integer overflow",
    ),
    ("timestamp(0).getHours('Nowhere/X') == 1", "unknown time zone Nowhere/X"),
    ("timestamp(0).getHours('europe/berlin') == 1", "unknown time zone europe/berlin"),
    ("timestamp(0).getHours('x:30') == 1", "strconv.Atoi: parsing \"x\": invalid syntax"),
    ("duration(device.driver) > duration('0')", "type conversion error from 'string'"),
    ("timestamp(device.driver) > timestamp(0)", "type conversion error from 'string'"),
    ("ip('1.2.3') == ip('::1')", "IP Address \"1.2.3\" parse error during conversion from string"),
    ("ip('::ffff:1.2.3.4').family() == 4", "IPv4-mapped IPv6 address"),
    ("ip('fe80::1%e').family() == 6", "IP address \"fe80::1%e\" with zone value is not allowed"),
    ("ip.isCanonical('x')", "IP Address \"x\" parse error"),
    ("cidr('1.2.3.4').prefixLength() == 1", "network address parse error"),
    ("url('a').getHost() == ''", "URL parse error during conversion from string"),
    ("format.named('none').value().validate('a').hasValue()", "optional.none() dereference"),
    ("device.driver.format([1 / 0]) == ''", "division by zero"),
    ("('%' + 'd').format(['a']) == ''", "error during formatting: decimal clause can only be used"),
    ("('%' + 'd').format([]) == ''", "index 0 out of range"),
    ("('%' + 'q').format([1]) == ''", "could not parse formatting clause: unrecognized"),
    ("['a', 'a'].transformMapEntry(i, v, {v: i}).size() == 1", "insert failed: key a already"),
    ("[dyn(1), dyn('a')].sort() == []", "list elements must have the same type"),
    ("[[1]].sortBy(x, dyn(x)) == []", "list elements must be comparable"),
    ("[dyn([1])].isSorted()", "no such overload"),
    ("lists.range(-1).size() == 0", "lists.range: size must be non-negative"),
    ("lists.range(1000001).size() == 0", "lists.range: size 1000001 exceeds maximum allowed"),
    ("device.attributes['gpu.example.com'].model.check('get').allowed()", "no such overload"),
    (
        "device.attributes['gpu.example.com'].index.name('a').check('get').errored()",
        "no such overload",
    ),
    (
        "has(device.attributes['gpu.example.com'].lanes.x)",
        "unsupported index type 'string' in list",
    ),
    // What breaks upstream's own evaluator can't be made up for by the other side.
    ("[1 / 0].distinct() == [] || true", "internal error"),
    ("true && {semver('1.0.0'): 1}.size() == 1 || true", "internal error"),
    ("dyn(semver('1.0.0')) in {'a': 1} || true", "internal error"),
    ("[1].flatten(1 / 0) == [] || true", "internal error"),
    // A turn of a macro that fails does not end it, and the first error stays.
    ("[0, 1].map(x, 1 / x).size() == 2", "division by zero"),
    ("[1, 2].filter(x, x / 0 == 1).size() == 0", "division by zero"),
    ("{'a': 1}[dyn(device.attributes['gpu.example.com'].lanes)] == 1", "invalid qualifier type"),
];

#[test]
fn the_libraries_fail_as_upstream_does() {
    for (source, start) in FAILING {
        let program = compile(source).map(|_| ());
        assert_eq!(program, Ok(()), "{source}");
        let found = answer(source);
        assert!(found.starts_with(start), "{source}: {found}");
    }
}
