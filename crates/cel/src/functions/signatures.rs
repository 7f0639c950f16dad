//! The functions that an expression may call, and the types they take and give: CEL's standard
//! library with optional values, its extensions for texts, lists, sets and comprehensions over two
//! variables, and Kubernetes' libraries.
//!
//! The objects of the authorization library are typed, so that an expression fails where it would
//! upstream; no value of theirs can be made, for there is no variable that holds one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::Version;
use crate::types::Type;

/// What a name means at run time. The variants of one name are told apart by their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Size,
    ToInt,
    ToUint,
    ToDouble,
    ToStr,
    ToBytes,
    ToBool,
    ToDuration,
    ToTimestamp,
    Dyn,
    TypeOf,
    /// A part of a time stamp, or of a duration.
    TimePart(TimePart),
    StartsWith,
    EndsWith,
    Contains,
    Matches,
    CharAt,
    IndexOf,
    LastIndexOf,
    Join,
    LowerAscii,
    UpperAscii,
    Replace,
    Split,
    Substring,
    Trim,
    Quote,
    Format,
    Find,
    FindAll,
    Quantity,
    IsQuantity,
    Sign,
    IsInteger,
    AsInteger,
    AsApproximateFloat,
    Add,
    Sub,
    IsLessThan,
    IsGreaterThan,
    CompareTo,
    Semver,
    IsSemver,
    Major,
    Minor,
    Patch,
    Url,
    IsUrl,
    UrlPart(UrlPart),
    Ip,
    IsIp,
    IsCanonical,
    Family,
    IpTest(IpTest),
    Cidr,
    IsCidr,
    ContainsIp,
    ContainsCidr,
    PrefixLength,
    Masked,
    NamedFormat(NamedFormat),
    FormatNamed,
    Validate,
    /// A step of the authorization library.
    Authorization,
    /// Its selectors, which cost by their length.
    AuthorizationSelector,
    /// Its check, which costs far more.
    AuthorizationCheck,
    IsSorted,
    Sum,
    Min,
    Max,
    Includes,
    Slice,
    Flatten,
    Distinct,
    Sort,
    SortByKeys,
    Reverse,
    Range,
    SetContains,
    SetEquivalent,
    SetIntersects,
    OptionalOf,
    OptionalOfNonZero,
    OptionalNone,
    OptionalUnwrap,
    HasValue,
    Value,
    OrElse,
    OrValue,
    First,
    Last,
}

/// What `getHours()` and its like give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimePart {
    FullYear,
    Month,
    DayOfYear,
    Date,
    DayOfMonth,
    DayOfWeek,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

/// What `getHost()` and its like give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrlPart {
    Scheme,
    Host,
    Hostname,
    Port,
    EscapedPath,
    Query,
}

/// What `isLoopback()` and its like ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IpTest {
    Unspecified,
    Loopback,
    LinkLocalMulticast,
    LinkLocalUnicast,
    GlobalUnicast,
}

/// A format that texts are held against (`format.dns1123Label()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedFormat {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1035Label,
    QualifiedName,
    Dns1123LabelPrefix,
    Dns1123SubdomainPrefix,
    Dns1035LabelPrefix,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

impl NamedFormat {
    /// All formats and the names of their functions after `format.`.
    pub(crate) const ALL: [(&'static str, &'static str, NamedFormat); 13] = [
        ("dns1123Label", "format.dns1123Label", NamedFormat::Dns1123Label),
        ("dns1123Subdomain", "format.dns1123Subdomain", NamedFormat::Dns1123Subdomain),
        ("dns1035Label", "format.dns1035Label", NamedFormat::Dns1035Label),
        ("qualifiedName", "format.qualifiedName", NamedFormat::QualifiedName),
        ("dns1123LabelPrefix", "format.dns1123LabelPrefix", NamedFormat::Dns1123LabelPrefix),
        (
            "dns1123SubdomainPrefix",
            "format.dns1123SubdomainPrefix",
            NamedFormat::Dns1123SubdomainPrefix,
        ),
        ("dns1035LabelPrefix", "format.dns1035LabelPrefix", NamedFormat::Dns1035LabelPrefix),
        ("labelValue", "format.labelValue", NamedFormat::LabelValue),
        ("uri", "format.uri", NamedFormat::Uri),
        ("uuid", "format.uuid", NamedFormat::Uuid),
        ("byte", "format.byte", NamedFormat::Byte),
        ("date", "format.date", NamedFormat::Date),
        ("datetime", "format.datetime", NamedFormat::DateTime),
    ];
}

impl Function {
    /// Whether upstream has one implementation for all variants, and not one for each.
    pub(crate) fn is_singleton(self) -> bool {
        matches!(self, Function::Size | Function::Matches | Function::Sort | Function::SortByKeys)
    }

    /// Whether upstream's count of the cost breaks down over an argument that failed or is no list,
    /// and with it the whole evaluation.
    pub(crate) fn is_broken_by(self, known: bool, failed: impl Fn(usize) -> bool) -> bool {
        match self {
            Function::Distinct => failed(0),
            Function::Sort => known && failed(0),
            Function::SortByKeys => known && failed(1),
            _ => false,
        }
    }

    /// Whether a call with constant arguments is computed at compile time, where a failure makes
    /// the expression invalid. So upstream treats conversions, and nothing else.
    pub(crate) fn is_conversion(self) -> bool {
        matches!(
            self,
            Function::ToInt
                | Function::ToUint
                | Function::ToDouble
                | Function::ToStr
                | Function::ToBytes
                | Function::ToBool
                | Function::ToDuration
                | Function::ToTimestamp
                | Function::Dyn
                | Function::TypeOf
        )
    }
}

/// One variant of a function or operator.
#[derive(Debug, PartialEq)]
pub(crate) struct Signature {
    /// `None` for operators.
    pub(crate) function: Option<Function>,
    /// Called as `receiver.name(…)`; the receiver is the first argument.
    pub(crate) receiver: bool,
    pub(crate) arguments: Vec<Type>,
    pub(crate) result: Type,
    /// First version of Kubernetes that knows it.
    pub(crate) since: Version,
}

/// All variants of a name in order, or nothing if it is unknown.
pub(crate) fn signatures(name: &str) -> &'static [Signature] {
    static TABLE: LazyLock<BTreeMap<&'static str, Vec<Signature>>> = LazyLock::new(|| {
        let mut table = Table { since: Version::ANY, rows: BTreeMap::new() };
        operators(&mut table);
        standard(&mut table);
        times(&mut table);
        strings(&mut table);
        quantities(&mut table);
        addresses(&mut table);
        formats(&mut table);
        authorization(&mut table);
        lists(&mut table);
        optionals(&mut table);
        table.rows
    });
    TABLE.get(name).map_or(&[], Vec::as_slice)
}

/// Number of type parameters that a signature may use.
pub(crate) const PARAMETERS: u32 = 2;
const A: Type = Type::Var(0);
const B: Type = Type::Var(1);
use Type::{Bool, Bytes, Cidr, Double, Duration, Dyn, Int, Ip, Quantity, Semver, Str, Timestamp};
use Type::{Uint, Url};

struct Table {
    since: Version,
    rows: BTreeMap<&'static str, Vec<Signature>>,
}

impl Table {
    fn add(
        &mut self,
        name: &'static str,
        function: Option<Function>,
        receiver: bool,
        arguments: &[Type],
        result: Type,
    ) {
        let (arguments, since) = (arguments.to_vec(), self.since);
        let row = Signature { function, receiver, arguments, result, since };
        self.rows.entry(name).or_default().push(row);
    }

    fn operator(&mut self, name: &'static str, arguments: &[Type], result: Type) {
        self.add(name, None, false, arguments, result);
    }

    /// `name(…)`
    fn global(&mut self, name: &'static str, f: Function, arguments: &[Type], result: Type) {
        self.add(name, Some(f), false, arguments, result);
    }

    /// `receiver.name(…)`
    fn member(&mut self, name: &'static str, f: Function, arguments: &[Type], result: Type) {
        self.add(name, Some(f), true, arguments, result);
    }
}

fn operators(t: &mut Table) {
    let (list, map) = (Type::list(A), Type::map(A, B));
    t.operator("_?_:_", &[Bool, A, A], A);
    t.operator("!_", &[Bool], Bool);
    t.operator("_==_", &[A, A], Bool);
    t.operator("_!=_", &[A, A], Bool);
    for kind in [Bytes, Double, Duration] {
        t.operator("_+_", &[kind.clone(), kind.clone()], kind);
    }
    t.operator("_+_", &[Duration, Timestamp], Timestamp);
    t.operator("_+_", &[Timestamp, Duration], Timestamp);
    t.operator("_+_", &[Int, Int], Int);
    t.operator("_+_", &[list.clone(), list.clone()], list.clone());
    t.operator("_+_", &[Str, Str], Str);
    t.operator("_+_", &[Uint, Uint], Uint);
    for name in ["_-_", "_*_", "_/_"] {
        for kind in [Double, Int, Uint] {
            t.operator(name, &[kind.clone(), kind.clone()], kind);
        }
    }
    t.operator("_-_", &[Duration, Duration], Duration);
    t.operator("_-_", &[Timestamp, Duration], Timestamp);
    t.operator("_-_", &[Timestamp, Timestamp], Duration);
    for kind in [Int, Uint] {
        t.operator("_%_", &[kind.clone(), kind.clone()], kind);
    }
    for kind in [Double, Int] {
        t.operator("-_", std::slice::from_ref(&kind), kind.clone());
    }
    for name in ["_<_", "_<=_", "_>_", "_>=_"] {
        for kind in [Bool, Str, Bytes, Timestamp, Duration] {
            t.operator(name, &[kind.clone(), kind], Bool);
        }
        for left in [Int, Uint, Double] {
            for right in [Int, Uint, Double] {
                t.operator(name, &[left.clone(), right], Bool);
            }
        }
    }
    t.operator("@in", &[A, list.clone()], Bool);
    t.operator("@in", &[A, map.clone()], Bool);
    t.operator("_[_]", &[list.clone(), Int], A);
    t.operator("_[_]", &[map.clone(), A], B);
    t.operator("_[_]", &[Type::optional(list.clone()), Int], Type::optional(A));
    t.operator("_[_]", &[Type::optional(map.clone()), A], Type::optional(B));
    t.operator("_[?_]", &[list.clone(), Int], Type::optional(A));
    t.operator("_[?_]", &[Type::optional(list), Int], Type::optional(A));
    t.operator("_[?_]", &[map.clone(), A], Type::optional(B));
    t.operator("_[?_]", &[Type::optional(map), A], Type::optional(B));
}

fn standard(t: &mut Table) {
    for kind in [Bytes, Type::list(A), Type::map(A, B), Str] {
        t.global("size", Function::Size, std::slice::from_ref(&kind), Int);
        t.member("size", Function::Size, &[kind], Int);
    }
    t.global("type", Function::TypeOf, &[A], Type::meta(A));
    t.global("dyn", Function::Dyn, &[A], Dyn);
    let conversions: [(&str, Function, &[Type], Type); 8] = [
        ("bool", Function::ToBool, &[Bool, Str], Bool),
        ("bytes", Function::ToBytes, &[Bytes, Str], Bytes),
        ("double", Function::ToDouble, &[Double, Int, Str, Uint], Double),
        ("duration", Function::ToDuration, &[Duration, Str], Duration),
        ("int", Function::ToInt, &[Int, Double, Duration, Str, Timestamp, Uint], Int),
        (
            "string",
            Function::ToStr,
            &[Str, Bool, Bytes, Double, Duration, Int, Timestamp, Uint, Ip, Cidr],
            Str,
        ),
        ("timestamp", Function::ToTimestamp, &[Timestamp, Int, Str], Timestamp),
        ("uint", Function::ToUint, &[Uint, Double, Int, Str], Uint),
    ];
    for (name, function, sources, result) in conversions {
        for source in sources {
            t.global(name, function, std::slice::from_ref(source), result.clone());
        }
    }
    t.member("contains", Function::Contains, &[Str, Str], Bool);
    t.member("endsWith", Function::EndsWith, &[Str, Str], Bool);
    t.member("startsWith", Function::StartsWith, &[Str, Str], Bool);
    t.global("matches", Function::Matches, &[Str, Str], Bool);
    t.member("matches", Function::Matches, &[Str, Str], Bool);
}

fn times(t: &mut Table) {
    for (name, part) in [
        ("getFullYear", TimePart::FullYear),
        ("getMonth", TimePart::Month),
        ("getDayOfYear", TimePart::DayOfYear),
        ("getDate", TimePart::Date),
        ("getDayOfMonth", TimePart::DayOfMonth),
        ("getDayOfWeek", TimePart::DayOfWeek),
        ("getHours", TimePart::Hours),
        ("getMinutes", TimePart::Minutes),
        ("getSeconds", TimePart::Seconds),
        ("getMilliseconds", TimePart::Milliseconds),
    ] {
        let function = Function::TimePart(part);
        t.member(name, function, &[Timestamp], Int);
        t.member(name, function, &[Timestamp, Str], Int);
        let of_duration = matches!(
            part,
            TimePart::Hours | TimePart::Minutes | TimePart::Seconds | TimePart::Milliseconds
        );
        if of_duration {
            t.member(name, function, &[Duration], Int);
        }
    }
}

fn strings(t: &mut Table) {
    t.member("charAt", Function::CharAt, &[Str, Int], Str);
    t.member("indexOf", Function::IndexOf, &[Str, Str], Int);
    t.member("indexOf", Function::IndexOf, &[Str, Str, Int], Int);
    t.member("lastIndexOf", Function::LastIndexOf, &[Str, Str], Int);
    t.member("lastIndexOf", Function::LastIndexOf, &[Str, Str, Int], Int);
    t.member("join", Function::Join, &[Type::list(Str)], Str);
    t.member("join", Function::Join, &[Type::list(Str), Str], Str);
    t.member("lowerAscii", Function::LowerAscii, &[Str], Str);
    t.member("upperAscii", Function::UpperAscii, &[Str], Str);
    t.member("replace", Function::Replace, &[Str, Str, Str], Str);
    t.member("replace", Function::Replace, &[Str, Str, Str, Int], Str);
    t.member("split", Function::Split, &[Str, Str], Type::list(Str));
    t.member("split", Function::Split, &[Str, Str, Int], Type::list(Str));
    t.member("substring", Function::Substring, &[Str, Int], Str);
    t.member("substring", Function::Substring, &[Str, Int, Int], Str);
    t.member("trim", Function::Trim, &[Str], Str);
    t.member("format", Function::Format, &[Str, Type::list(Dyn)], Str);
    t.global("strings.quote", Function::Quote, &[Str], Str);
    t.member("find", Function::Find, &[Str, Str], Str);
    t.member("findAll", Function::FindAll, &[Str, Str], Type::list(Str));
    t.member("findAll", Function::FindAll, &[Str, Str, Int], Type::list(Str));
}

fn quantities(t: &mut Table) {
    t.global("quantity", Function::Quantity, &[Str], Quantity);
    t.global("isQuantity", Function::IsQuantity, &[Str], Bool);
    t.global("sign", Function::Sign, &[Quantity], Int);
    t.member("isInteger", Function::IsInteger, &[Quantity], Bool);
    t.member("asInteger", Function::AsInteger, &[Quantity], Int);
    t.member("asApproximateFloat", Function::AsApproximateFloat, &[Quantity], Double);
    for (name, function) in [("add", Function::Add), ("sub", Function::Sub)] {
        t.member(name, function, &[Quantity, Quantity], Quantity);
        t.member(name, function, &[Quantity, Int], Quantity);
    }
    for kind in [Quantity, Semver] {
        let both = [kind.clone(), kind];
        t.member("isLessThan", Function::IsLessThan, &both, Bool);
        t.member("isGreaterThan", Function::IsGreaterThan, &both, Bool);
        t.member("compareTo", Function::CompareTo, &both, Int);
    }
    t.global("semver", Function::Semver, &[Str], Semver);
    t.global("semver", Function::Semver, &[Str, Bool], Semver);
    t.global("isSemver", Function::IsSemver, &[Str], Bool);
    t.global("isSemver", Function::IsSemver, &[Str, Bool], Bool);
    t.member("major", Function::Major, &[Semver], Int);
    t.member("minor", Function::Minor, &[Semver], Int);
    t.member("patch", Function::Patch, &[Semver], Int);
}

fn addresses(t: &mut Table) {
    t.global("url", Function::Url, &[Str], Url);
    t.global("isURL", Function::IsUrl, &[Str], Bool);
    for (name, part) in [
        ("getScheme", UrlPart::Scheme),
        ("getHost", UrlPart::Host),
        ("getHostname", UrlPart::Hostname),
        ("getPort", UrlPart::Port),
        ("getEscapedPath", UrlPart::EscapedPath),
    ] {
        t.member(name, Function::UrlPart(part), &[Url], Str);
    }
    let query = Type::map(Str, Type::list(Str));
    t.member("getQuery", Function::UrlPart(UrlPart::Query), &[Url], query);
    t.global("ip", Function::Ip, &[Str], Ip);
    t.member("ip", Function::Ip, &[Cidr], Ip);
    t.global("isIP", Function::IsIp, &[Str], Bool);
    t.global("ip.isCanonical", Function::IsCanonical, &[Str], Bool);
    t.member("family", Function::Family, &[Ip], Int);
    for (name, test) in [
        ("isUnspecified", IpTest::Unspecified),
        ("isLoopback", IpTest::Loopback),
        ("isLinkLocalMulticast", IpTest::LinkLocalMulticast),
        ("isLinkLocalUnicast", IpTest::LinkLocalUnicast),
        ("isGlobalUnicast", IpTest::GlobalUnicast),
    ] {
        t.member(name, Function::IpTest(test), &[Ip], Bool);
    }
    t.global("cidr", Function::Cidr, &[Str], Cidr);
    t.global("isCIDR", Function::IsCidr, &[Str], Bool);
    for other in [Str, Ip] {
        t.member("containsIP", Function::ContainsIp, &[Cidr, other], Bool);
    }
    for other in [Str, Cidr] {
        t.member("containsCIDR", Function::ContainsCidr, &[Cidr, other], Bool);
    }
    t.member("prefixLength", Function::PrefixLength, &[Cidr], Int);
    t.member("masked", Function::Masked, &[Cidr], Cidr);
}

fn formats(t: &mut Table) {
    for (_, name, format) in NamedFormat::ALL {
        t.global(name, Function::NamedFormat(format), &[], Type::Format);
    }
    let named = Type::optional(Type::Format);
    t.global("format.named", Function::FormatNamed, &[Str], named);
    let faults = Type::optional(Type::list(Str));
    t.member("validate", Function::Validate, &[Type::Format, Str], faults);
}

fn authorization(t: &mut Table) {
    let authorizer = Type::Authorization("Authorizer");
    let path = Type::Authorization("PathCheck");
    let group = Type::Authorization("GroupCheck");
    let resource = Type::Authorization("ResourceCheck");
    let decision = Type::Authorization("Decision");
    let step = Function::Authorization;
    t.member("path", step, &[authorizer.clone(), Str], path.clone());
    t.member("group", step, &[authorizer.clone(), Str], group.clone());
    t.member("serviceAccount", step, &[authorizer.clone(), Str, Str], authorizer);
    t.member("resource", step, &[group, Str], resource.clone());
    for (name, function) in [
        ("subresource", step),
        ("namespace", step),
        ("name", step),
        ("fieldSelector", Function::AuthorizationSelector),
        ("labelSelector", Function::AuthorizationSelector),
    ] {
        t.member(name, function, &[resource.clone(), Str], resource.clone());
    }
    for checked in [path, resource] {
        t.member("check", Function::AuthorizationCheck, &[checked, Str], decision.clone());
    }
    for (name, result) in [("errored", Bool), ("error", Str), ("allowed", Bool), ("reason", Str)] {
        t.member(name, step, std::slice::from_ref(&decision), result);
    }
}

/// Types whose values have an order.
const COMPARABLE: [Type; 8] = [Int, Uint, Double, Bool, Duration, Timestamp, Str, Bytes];

fn lists(t: &mut Table) {
    let extended = Version::new(1, 34);
    for kind in COMPARABLE {
        let list = [Type::list(kind.clone())];
        t.member("isSorted", Function::IsSorted, &list, Bool);
        t.member("max", Function::Max, &list, kind.clone());
        t.member("min", Function::Min, &list, kind);
    }
    for kind in [Int, Uint, Double, Duration] {
        t.member("sum", Function::Sum, &[Type::list(kind.clone())], kind);
    }
    let list = Type::list(A);
    t.member("indexOf", Function::IndexOf, &[list.clone(), A], Int);
    t.member("lastIndexOf", Function::LastIndexOf, &[list.clone(), A], Int);
    t.since = extended;
    for kind in COMPARABLE {
        let of_kind = Type::list(kind);
        t.member("sort", Function::Sort, std::slice::from_ref(&of_kind), of_kind.clone());
        let both = [list.clone(), of_kind];
        t.member("@sortByAssociatedKeys", Function::SortByKeys, &both, list.clone());
    }
    t.member("slice", Function::Slice, &[list.clone(), Int, Int], list.clone());
    t.member("flatten", Function::Flatten, &[Type::list(list.clone())], list.clone());
    t.member("flatten", Function::Flatten, &[Type::list(Dyn), Int], Type::list(Dyn));
    t.member("distinct", Function::Distinct, std::slice::from_ref(&list), list.clone());
    t.member("reverse", Function::Reverse, std::slice::from_ref(&list), list.clone());
    t.global("lists.range", Function::Range, &[Int], Type::list(Int));
    t.since = Version::ANY;
    let both = [list.clone(), list];
    t.global("sets.contains", Function::SetContains, &both, Bool);
    t.global("sets.equivalent", Function::SetEquivalent, &both, Bool);
    t.global("sets.intersects", Function::SetIntersects, &both, Bool);
    // Whether it is known is not a matter of the version alone: the checker asks the environment.
    t.member("includes", Function::Includes, &[Dyn, Dyn], Bool);
}

fn optionals(t: &mut Table) {
    let optional = Type::optional(A);
    t.global("optional.of", Function::OptionalOf, &[A], optional.clone());
    t.global("optional.ofNonZeroValue", Function::OptionalOfNonZero, &[A], optional.clone());
    t.global("optional.none", Function::OptionalNone, &[], optional.clone());
    t.member("hasValue", Function::HasValue, std::slice::from_ref(&optional), Bool);
    t.member("value", Function::Value, std::slice::from_ref(&optional), A);
    t.member("or", Function::OrElse, &[optional.clone(), optional.clone()], optional.clone());
    t.member("orValue", Function::OrValue, &[optional.clone(), A], A);
    let list = Type::list(A);
    t.member("first", Function::First, std::slice::from_ref(&list), optional.clone());
    t.member("last", Function::Last, std::slice::from_ref(&list), optional.clone());
    let optionals = [Type::list(optional)];
    t.global("optional.unwrap", Function::OptionalUnwrap, &optionals, list.clone());
    t.member("unwrapOpt", Function::OptionalUnwrap, &optionals, list);
}
