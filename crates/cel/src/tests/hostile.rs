//! Text that means harm: no panic, no overflow of a 2 MiB stack, no long work.

use super::{DRIVER, compile, object};
use crate::{COST_LIMIT, Device, Verdict};

/// Compiles, evaluates and explains on a thread with the stack that runtimes give.
fn survive(sources: Vec<String>) {
    let run = move || {
        let object = object();
        let device = Device::new(DRIVER, &object).unwrap();
        for source in sources {
            if let Ok(program) = compile(&source) {
                let evaluation = program.evaluate(&device, COST_LIMIT);
                let explained = !program.explain(&device).is_empty();
                assert_eq!(explained, evaluation.verdict != Verdict::Yes);
                let _ = program.reads().project(&device);
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap();
    thread.join().unwrap();
}

/// The part around `inner`, `n` times.
fn nested(open: &str, inner: &str, close: &str, n: usize) -> String {
    format!("{}{inner}{}", open.repeat(n), close.repeat(n))
}

#[test]
fn depth_does_not_overflow_the_stack() {
    let shapes = [
        ("(", "true", ")"),
        ("!(", "true", ")"),
        ("[", "1", "]"),
        ("{1: ", "1", "}"),
        ("-(", "1", ")"),
        ("1 + (", "1", ")"),
        ("true ? (", "true", ") : false"),
        ("true || (false && (", "true", "))"),
        ("string(", "1", ")"),
        ("string(dyn(", "1", "))"),
        ("[1].all(x, ", "true", ")"),
        ("[[1]].map(x, ", "1", ")"),
        ("cel.bind(x, ", "true", ", x)"),
        ("cel.bind(x, true, ", "x", ")"),
        ("optional.of(", "1", ")"),
        ("optional.of(1).optMap(x, ", "1", ")"),
        ("device.attributes[", "'a'", "]"),
        ("", "device", ".a"),
        ("", "device.attributes", "['a']"),
        ("", "'a'", ".trim()"),
        ("", "1", " + 1"),
        ("", "true", " == true"),
        ("", "true", " ? true : false"),
        ("true ? true : ", "false", ""),
        ("!", "true", ""),
        ("-", "1", ""),
        ("has(device.attributes.", "a", ")"),
        ("'a'.matches(", "'b'", ")"),
        ("[1].exists(x, true) && [2].exists(y, ", "true", ")"),
    ];
    let mut sources = Vec::new();
    for (open, inner, close) in shapes {
        for n in [1, 40, 80, 100, 120, 200, 245, 248, 249, 250, 251, 500, 5000] {
            sources.push(nested(open, inner, close, n));
            sources.push(format!("{} == 1", nested(open, inner, close, n)));
            sources.push(format!("device.attributes['a'].x && {}", nested(open, inner, close, n)));
        }
    }
    survive(sources);
}

#[test]
fn long_chains_are_fine() {
    let and = vec!["true"; 1600].join("&&");
    let or = vec!["false"; 1400].join("||");
    assert!(compile(&and).is_ok() && compile(&or).is_ok());
    let list = format!("[{}].size() > 0", vec!["1"; 3000].join(","));
    let map = (0..900).map(|n| format!("{n}:1")).collect::<Vec<_>>().join(",");
    survive(vec![and, or, list, format!("{{{map}}}.size() == 900")]);
}

/// What is bound again and again to something made of itself, and then used.
fn used(unit: &str, start: &str, last: &str) -> String {
    let open = format!("cel.bind(x, {unit}, ");
    format!("cel.bind(x, {start}, {})", nested(&open, last, ")", 60))
}

/// A part that is evaluated 60 times, n levels deep.
fn alls(n: usize, inner: &str) -> String {
    let list = format!("[{}]", vec!["1"; 60].join(","));
    (0..n).fold(inner.to_owned(), |inner, at| format!("{list}.all(x{at}, {inner})"))
}

#[test]
fn work_is_limited() {
    let doubling = |unit: &str, start: &str| {
        let bindings = |n: usize| {
            let open = format!("cel.bind(x, {unit}, ");
            nested(&open, "true", ")", n)
        };
        format!("cel.bind(x, {start}, {})", bindings(60))
    };
    let keys = (0..800).map(|n| format!("{n}:1")).collect::<Vec<_>>().join(",");
    let long = "a".repeat(3000);
    survive(vec![
        doubling("x + x", "'a'"),
        doubling("x + x", "[1]"),
        used("x + x", "'abcdefgh'", "x == ''"),
        used("x + x", "[1]", "x == [1]"),
        used("x + x", "[1]", "x.distinct() == x"),
        used("x + x", "[1]", "x.all(y, y == 1)"),
        used("[x, x]", "[1]", "true"),
        used("x.replace('', x)", "'ab'", "x == ''"),
        used("[x, x].join(x)", "'ab'", "x == ''"),
        used("x.map(y, x)", "[dyn(1)]", "true"),
        used("[x, x].flatten()", "[1]", "x.size() == 1"),
        used("{x: x}", "1", "true"),
        used("{'a': x, 'b': x}", "dyn(1)", "x == x"),
        used("[dyn(x), dyn(x)]", "dyn(1)", "x == x"),
        used("[dyn(x), dyn(x)]", "dyn(1)", "string(x.size()) == ''"),
        used("optional.of([x])", "[]", "true"),
        used("{[]: x, [[]]: x}", "[]", "true"),
        alls(5, "true"),
        alls(6, "[1, 2, 3].map(z, z).size() == 3"),
        alls(3, &format!("{{{keys}}}[799] == 1")),
        alls(4, "'aaaaaaaaaa'.matches(string(x0) + '(a|aa)+$')"),
        alls(3, &format!("'{long}'.contains('{long}b')")),
        alls(2, &format!("'{long}'.matches('(a*)*b')")),
        alls(2, "lists.range(100000).sum() > 0"),
        format!("'{long}'.replace('', '{long}').size() > 0"),
        format!("'{long}'.indexOf('{}b') > 0", "a".repeat(1500)),
        "lists.range(1000000000).size() > 0".to_owned(),
        "'a'.matches('(a{1000}){1000}')".to_owned(),
        format!("'a'.matches('{}')", nested("(", "a", ")", 3000)),
        format!("'a'.matches('{}')", "[".repeat(5000)),
        format!("'a'.matches('{}')", "\\\\Q".repeat(2000)),
    ]);
}

#[test]
fn work_of_the_libraries_is_limited() {
    survive(vec![
        alls(2, "lists.range(1000000).sortBy(x, -x).size() > 0"),
        alls(3, "'%s'.format([lists.range(30000)]).size() > 0"),
        used("'%s%s'.format([x, x])", "'ab'", "x == ''"),
        used("'%x'.format([x])", "'ab'", "x == ''"),
        used("{'a': x, 'b': x}", "dyn(1)", "'%s'.format([x]) == ''"),
        used("[dyn(x), dyn(x)]", "dyn(1)", "'%s'.format([x]) == ''"),
        format!("'%.{}f'.format([1.0]).size() > 0", "9".repeat(18)),
        format!("'%.{}e'.format([1.0]).size() > 0", "9".repeat(18)),
        format!("'{}'.format([1.0])", "%.9999e".repeat(1000)),
        used("x.distinct() + x", "lists.range(3)", "x.size() > 0"),
        used("x.map(y, x).flatten(2)", "[1]", "x.size() > 0"),
        used("[x, x].flatten().sort()", "[1, 2]", "x.size() > 0"),
        used("x.transformMapEntry(i, y, {i: x})", "[1]", "x.size() > 0"),
        alls(3, "lists.range(500).transformMapEntry(i, v, {v: i}).size() > 0"),
        alls(2, &format!("url('https://a/?{}').getQuery().size() > 0", "a&b=".repeat(700))),
        alls(3, &format!("format.dns1123Subdomain().validate('{}').hasValue()", "a.".repeat(900))),
        alls(3, &format!("duration('{}') > duration('0')", "1h".repeat(1500))),
        alls(3, "timestamp('9999-12-31T23:59:59Z').getHours('America/New_York') > 0"),
        alls(3, "timestamp(string(timestamp(x0))).getDayOfYear() > 0"),
        nested("optional.of(1).optMap(x, ", "1", ").optMap(y, y)", 60),
        nested("", "optional.of(1)", ".optMap(a, a)", 240),
        nested("", "optional.of(1)", ".optFlatMap(a, optional.of(a))", 200),
        nested("", "[2, 1]", ".sortBy(a, a)", 120),
        nested("[1].sortBy(x, ", "1", ").size()", 60),
        nested("cel.bind(x, 1, ", "x", " + x)", 120),
        nested("'%s'.format([", "1", "])", 100),
        format!("[{}] == []", vec!["aaa"; 2500].join(",")),
        format!("[{}] == []", vec!["[1,'a']"; 1200].join(",")),
    ]);
}

#[test]
fn any_text_is_survived() {
    let seeds = [
        "device.attributes['gpu.example.com'].model.startsWith(\"H\") && 1 + 2u > 0x3 ? [1.5] : {}",
        "cel.bind(d, device.capacity, d.?a[?0].optMap(x, x).orValue(b'\\xff') in [r'\\d', null])",
        "'''a\"b'''.matches('[^]]\\\\Q.\\\\E') || [1].all(i, v, !has(a.b)) // end",
    ];
    let mut sources = Vec::new();
    for seed in seeds {
        let characters: Vec<char> = seed.chars().collect();
        for at in 0..characters.len() {
            let (before, after) = (&characters[..at], &characters[at..]);
            sources.push(before.iter().collect());
            sources.push(after.iter().collect());
            sources.push(before.iter().chain(&after[1..]).collect());
            for inserted in ['(', ')', '"', '\'', '\\', '?', '.', '[', '\n', '\0', 'β', '`', '-'] {
                sources.push(before.iter().chain([&inserted]).chain(after).collect());
            }
        }
    }
    survive(sources);
}
