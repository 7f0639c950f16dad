//! The functions that an expression may call, and the types they take and give: CEL's standard
//! library, its strings, lists, sets and optionals, and Kubernetes' quantities, semantic versions,
//! regular expressions and lists.
//!
//! Left out so far: durations and time stamps, `format`, URLs, IP addresses and CIDRs.

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
    Dyn,
    TypeOf,
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
    IsSorted,
    Sum,
    Min,
    Max,
    Includes,
    Slice,
    Flatten,
    Distinct,
    Sort,
    Reverse,
    Range,
    SetContains,
    SetEquivalent,
    SetIntersects,
    OptionalOf,
    OptionalOfNonZero,
    OptionalNone,
    HasValue,
    Value,
    OrElse,
    OrValue,
}

impl Function {
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
                | Function::Dyn
                | Function::TypeOf
        )
    }
}

/// One variant of a function or operator.
#[derive(Debug)]
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
        let mut table = Table { since: Version::OLDEST, rows: BTreeMap::new() };
        operators(&mut table);
        standard(&mut table);
        strings(&mut table);
        kubernetes(&mut table);
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
use Type::{Bool, Bytes, Double, Dyn, Int, Quantity, Semver, Str, Uint};

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
    for kind in [Bytes, Double, Int] {
        t.operator("_+_", &[kind.clone(), kind.clone()], kind);
    }
    t.operator("_+_", &[list.clone(), list.clone()], list.clone());
    t.operator("_+_", &[Str, Str], Str);
    t.operator("_+_", &[Uint, Uint], Uint);
    for name in ["_-_", "_*_", "_/_"] {
        for kind in [Double, Int, Uint] {
            t.operator(name, &[kind.clone(), kind.clone()], kind);
        }
    }
    for kind in [Int, Uint] {
        t.operator("_%_", &[kind.clone(), kind.clone()], kind);
    }
    for kind in [Double, Int] {
        t.operator("-_", std::slice::from_ref(&kind), kind.clone());
    }
    for name in ["_<_", "_<=_", "_>_", "_>=_"] {
        for kind in [Bool, Str, Bytes] {
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
    t.global("type", Function::TypeOf, &[A], Type::Meta);
    t.global("dyn", Function::Dyn, &[A], Dyn);
    let conversions: [(&str, Function, &[Type], Type); 6] = [
        ("bool", Function::ToBool, &[Bool, Str], Bool),
        ("bytes", Function::ToBytes, &[Bytes, Str], Bytes),
        ("double", Function::ToDouble, &[Double, Int, Str, Uint], Double),
        ("int", Function::ToInt, &[Int, Double, Str, Uint], Int),
        ("string", Function::ToStr, &[Str, Bool, Bytes, Double, Int, Uint], Str),
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
    t.global("strings.quote", Function::Quote, &[Str], Str);
    t.member("find", Function::Find, &[Str, Str], Str);
    t.member("findAll", Function::FindAll, &[Str, Str], Type::list(Str));
    t.member("findAll", Function::FindAll, &[Str, Str, Int], Type::list(Str));
}

fn kubernetes(t: &mut Table) {
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

fn lists(t: &mut Table) {
    for kind in [Int, Uint, Double, Bool, Str, Bytes] {
        let list = [Type::list(kind.clone())];
        t.member("isSorted", Function::IsSorted, &list, Bool);
        t.member("max", Function::Max, &list, kind.clone());
        t.member("min", Function::Min, &list, kind.clone());
        t.member("sort", Function::Sort, &list, Type::list(kind));
    }
    for kind in [Int, Uint, Double] {
        t.member("sum", Function::Sum, &[Type::list(kind.clone())], kind);
    }
    let list = Type::list(A);
    t.member("indexOf", Function::IndexOf, &[list.clone(), A], Int);
    t.member("lastIndexOf", Function::LastIndexOf, &[list.clone(), A], Int);
    t.member("slice", Function::Slice, &[list.clone(), Int, Int], list.clone());
    t.member("flatten", Function::Flatten, &[Type::list(list.clone())], list.clone());
    t.member("flatten", Function::Flatten, &[Type::list(Dyn), Int], Type::list(Dyn));
    t.member("distinct", Function::Distinct, std::slice::from_ref(&list), list.clone());
    t.member("reverse", Function::Reverse, std::slice::from_ref(&list), list.clone());
    t.global("lists.range", Function::Range, &[Int], Type::list(Int));
    let both = [list.clone(), list];
    t.global("sets.contains", Function::SetContains, &both, Bool);
    t.global("sets.equivalent", Function::SetEquivalent, &both, Bool);
    t.global("sets.intersects", Function::SetIntersects, &both, Bool);
    t.since = Version::new(1, 36);
    t.member("includes", Function::Includes, &[Dyn, Dyn], Bool);
    t.since = Version::OLDEST;
}

fn optionals(t: &mut Table) {
    let optional = Type::optional(A);
    t.global("optional.of", Function::OptionalOf, &[A], optional.clone());
    t.global("optional.ofNonZeroValue", Function::OptionalOfNonZero, &[A], optional.clone());
    t.global("optional.none", Function::OptionalNone, &[], optional.clone());
    t.member("hasValue", Function::HasValue, std::slice::from_ref(&optional), Bool);
    t.member("value", Function::Value, std::slice::from_ref(&optional), A);
    t.member("or", Function::OrElse, &[optional.clone(), optional.clone()], optional.clone());
    t.member("orValue", Function::OrValue, &[optional, A], A);
}
