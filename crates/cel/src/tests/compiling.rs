//! What is refused before a device is seen: kind, place, words and hint.

use super::compile;
use crate::CompileErrorKind::{
    BadConstant, NoSuchOverload, NotBool, Syntax, TooDeep, TooLong, UndeclaredReference,
    UndefinedField, Unsupported, WrongType,
};
use crate::{CompileErrorKind, Environment, MAX_LENGTH, Program, Version};

/// Expression, kind, line and column, part of the message.
const REFUSED: &[(&str, CompileErrorKind, (usize, usize), &str)] = &[
    ("", Syntax, (1, 1), "<EOF>"),
    ("?!", Syntax, (1, 1), "extraneous input '?'"),
    ("true true", Syntax, (1, 6), "mismatched input 'true'"),
    ("device.driver ==", Syntax, (1, 17), "<EOF>"),
    ("(true", Syntax, (1, 6), "expecting ')'"),
    ("device.driver == 'a\nb'", Syntax, (1, 18), "line break"),
    ("device.driver == 'ab", Syntax, (1, 18), "not closed"),
    ("'\\q' == ''", Syntax, (1, 1), "unknown escape"),
    ("true # x", Syntax, (1, 6), "token recognition"),
    ("9223372036854775808 > 0", Syntax, (1, 1), "invalid int literal"),
    ("has(device)", Syntax, (1, 5), "has()"),
    ("[1].all(x + 1, true)", Syntax, (1, 11), "simple name"),
    ("Foo{a: 1} == 1", UndeclaredReference, (1, 4), "'Foo'"),
    ("while == 1", Syntax, (1, 1), "reserved"),
    ("true &&\n  nothing", UndeclaredReference, (2, 3), "'nothing'"),
    ("device.driver.foo()", UndeclaredReference, (1, 18), "'foo'"),
    ("google.protobuf.Int32Value{value: 1} == 1", Unsupported, (1, 27), "Int32Value"),
    ("true || duration('1x') < duration('1s')", BadConstant, (1, 18), "invalid duration argument"),
    ("timestamp('2026') < timestamp(0)", BadConstant, (1, 11), "invalid timestamp argument"),
    ("timestamp(253402300800) < timestamp(0)", BadConstant, (1, 11), "invalid timestamp"),
    ("'%d'.format(['a']) == ''", BadConstant, (1, 14), "decimal clause"),
    ("'%d %d'.format([1]) == ''", BadConstant, (1, 15), "index 1 out of range"),
    ("'%d'.format([1, 2]) == ''", BadConstant, (1, 12), "expected 1, got 2"),
    ("'%z'.format([1]) == ''", BadConstant, (1, 12), "unrecognized formatting clause"),
    ("type(kubernetes.DRADevice) == type", BadConstant, (1, 16), "undefined type"),
    ("{'a': 1}[dyn([1])] == 1", BadConstant, (1, 13), "invalid qualifier type"),
    ("zzz == aaa", UndeclaredReference, (1, 1), "'zzz'"),
    ("nothing(aaa)", UndeclaredReference, (1, 8), "'nothing'"),
    ("device.driver.foo(aaa)", UndeclaredReference, (1, 18), "'foo'"),
    ("device.nodeName == 'a'", UndefinedField, (1, 7), "'nodeName'"),
    ("device.driver == 1", NoSuchOverload, (1, 15), "'(string, int)'"),
    ("device.driver.startsWith(1)", NoSuchOverload, (1, 25), "'string.(int)'"),
    ("device.driver.startsWith('a', 'b')", NoSuchOverload, (1, 25), "startsWith"),
    ("1 + 'a' == 2", NoSuchOverload, (1, 3), "_+_"),
    ("1 && true", WrongType, (1, 1), "expected type 'bool' but found 'int'"),
    ("[1, 'a'].size() == 2", WrongType, (1, 5), "expected type 'int' but found 'string'"),
    ("{1: 2, 'a': 3}.size() == 2", WrongType, (1, 8), "expected type 'int'"),
    ("device.driver.model == ''", WrongType, (1, 14), "field selection"),
    ("5.all(x, true)", WrongType, (1, 1), "range of a comprehension"),
    ("device.driver.all(x, true)", WrongType, (1, 7), "range of a comprehension"),
    ("[1].map(x, x).exists(x, x)", WrongType, (1, 25), "expected type 'bool'"),
    ("1", NotBool, (1, 1), "must evaluate to bool or the unknown type, not int"),
    ("device", NotBool, (1, 1), "kubernetes.DRADevice"),
    ("true || int('0x10') == 1", BadConstant, (1, 12), "'string' to 'int'"),
    ("'a'.matches('[')", BadConstant, (1, 13), "invalid matches argument"),
    ("'a'.matches('a**')", BadConstant, (1, 13), "invalid matches argument"),
    ("'a'.matches('a{1,1001}')", BadConstant, (1, 13), "invalid matches argument"),
    ("'a'.matches('(x{1000}){2}')", BadConstant, (1, 13), "invalid matches argument"),
    ("'a'.matches('(?x)a')", BadConstant, (1, 13), "invalid matches argument"),
    ("'a'.matches('[[:foo:]]')", BadConstant, (1, 13), "invalid matches argument"),
    ("'a'.find('(') == ''", BadConstant, (1, 10), "error parsing regexp"),
];

#[test]
fn faults_have_kind_place_and_words() {
    for (source, kind, place, part) in REFUSED {
        let error = compile(source).expect_err(source);
        assert_eq!((error.kind, (error.line, error.column)), (*kind, *place), "{source}: {error}");
        assert!(error.message.contains(part), "{source}: {}", error.message);
    }
}

#[test]
fn places_count_characters_and_ranges_bytes() {
    let error = compile("'βγ' == 1").unwrap_err();
    assert_eq!((error.line, error.column), (1, 6));
    assert_eq!(error.range, (0, 11));
}

#[test]
fn a_number_compared_with_a_quantity_is_told_how() {
    let source = "device.capacity[\"gpu.nvidia.com\"].memory >= 40";
    let error = compile(source).unwrap_err();
    assert_eq!((error.kind, error.column), (NoSuchOverload, 42));
    assert_eq!(
        error.hint.unwrap(),
        "Compare quantities with compareTo: \
         device.capacity[\"gpu.nvidia.com\"].memory.compareTo(quantity(\"40\")) >= 0"
    );
    let mirrored = compile("40 < device.capacity['a'].b").unwrap_err();
    assert_eq!(
        mirrored.hint.unwrap(),
        "Compare quantities with compareTo: device.capacity['a'].b.compareTo(quantity(\"40\")) > 0"
    );
    let text = compile("device.capacity['a'].b > '40Gi'").unwrap_err();
    assert!(text.hint.unwrap().contains("compareTo(quantity('40Gi')) > 0"));
    let argument = compile("device.capacity['a'].b.compareTo('40Gi') > 0").unwrap_err();
    assert!(argument.hint.unwrap().contains("quantity("));
}

#[test]
fn relating_two_devices_is_told_about_match_attribute() {
    for source in [
        "device.attributes['a'].root == other.attributes['a'].root",
        "devices[0].driver == device.driver",
        "peer.driver == device.driver",
        "devices.all(d, d.driver == device.driver)",
        "x.attributes['a'].root == device.attributes['a'].root",
    ] {
        let error = compile(source).unwrap_err();
        assert_eq!(error.kind, UndeclaredReference, "{source}");
        let hint = error.hint.unwrap();
        assert!(
            hint.starts_with("A selector sees one device; to relate devices use matchAttribute")
        );
    }
    let plain = compile("H100 == device.driver").unwrap_err();
    assert!(plain.hint.unwrap().contains("quotes"));
}

#[test]
fn half_an_operator_names_the_whole_one() {
    for (half, whole) in [("=", "=="), ("&", "&&"), ("|", "||")] {
        let error = compile(&format!("device.driver {half} 'x'")).unwrap_err();
        assert!(error.hint.unwrap().ends_with(whole), "{half}");
    }
    assert_eq!(compile("device.driver # 'x'").unwrap_err().hint, None);
}

#[test]
fn versions_know_their_functions() {
    let source = "device.attributes['a'].modes.includes('x')";
    let old = Environment::stored(Version::new(1, 34));
    assert_eq!(Program::compile(source, &old).unwrap_err().kind, UndeclaredReference);
    assert!(compile(source).is_ok());
}

#[test]
fn limits_are_limits() {
    let longest = format!("{}true", " ".repeat(MAX_LENGTH - 4));
    assert!(compile(&longest).is_ok());
    assert_eq!(compile(&format!(" {longest}")).unwrap_err().kind, TooLong);
    let chain = |terms: usize| format!("{} > 0", vec!["1"; terms].join("+"));
    assert!(compile(&chain(249)).is_ok());
    assert_eq!(compile(&chain(250)).unwrap_err().kind, TooDeep);
    let parentheses = |n: usize| format!("{}true{}", "(".repeat(n), ")".repeat(n));
    assert!(compile(&parentheses(249)).is_ok());
    assert_eq!(compile(&parentheses(250)).unwrap_err().kind, TooDeep);
}

/// The `cel` crate's parser is a second opinion on what is CEL at all.
#[test]
fn another_parser_accepts_and_refuses_the_same() {
    let accepted = [
        "a ? b : c ? d : e",
        "!!a",
        "--1",
        "-(1)",
        "a.b.c[1].d(e)[f]",
        "[1, 2,]",
        "{'a': 1,}",
        "r'\\d' + \"\\u00e9\"",
        "0x1F + 7u",
        "1e3 + .5",
        "'''a'b''' + b'x'",
        "a in [1]",
        ".a.b",
        "a.b() ? 1 : 2",
        "has(a.b)",
        "[1].map(x, x > 0, x)",
        "a // comment",
        "a < b == c",
        "\ta\n",
        "[].exists_one(x, x)",
        "a[b ? c : d]",
        "-9223372036854775808",
        "a && b || c && d",
    ];
    let refused = [
        "",
        "a(b)(c)",
        "a b",
        "a +",
        "(a",
        "[1, 2",
        "{a}",
        "'a",
        "a..b",
        "1.a.",
        "a ? b",
        "if",
        "a &",
        "has(a)",
        "[1].map(1, x)",
        "0x",
        "\"\\q\"",
        "a = b",
        "f(,)",
        "a[",
        "!",
        "99999999999999999999",
    ];
    let theirs = |source: &str| {
        let parser = cel::parser::PrattParser::new().enable_optional_syntax(true);
        parser.parse(source).is_ok()
    };
    for source in accepted {
        let ours = crate::parse::parse(source);
        assert_eq!((ours.is_ok(), theirs(source)), (true, true), "{source}: {ours:?}");
    }
    for source in refused {
        assert_eq!(
            (crate::parse::parse(source).is_ok(), theirs(source)),
            (false, false),
            "{source}"
        );
    }
}
