//! CEL's types and their unification, as Kubernetes' type checker does it: gradual, with `dyn`
//! standing for anything, and type variables for the elements of empty literals and the
//! parameters of generic functions.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Dyn,
    /// An attribute's type where attributes can't be lists: like `dyn`, but nothing to iterate over.
    Any,
    /// Of what has a fault that was told already: it causes no other.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Str,
    Bytes,
    Duration,
    Timestamp,
    Quantity,
    Semver,
    Url,
    Format,
    Ip,
    Cidr,
    /// Objects of the authorization library, by their kind: no value of these can be made here.
    Authorization(&'static str),
    Device,
    /// The type of a type's name, as `type(x)` gives.
    Meta(Arc<Type>),
    List(Arc<Type>),
    Map(Arc<(Type, Type)>),
    Optional(Arc<Type>),
    /// A type variable.
    Var(u32),
}

/// Types with more parts than this are refused: their handling is linear in their parts, and a
/// few nested bindings could otherwise double them without end.
pub(crate) const MAX_TYPE_PARTS: usize = 256;

impl Type {
    pub(crate) fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    pub(crate) fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    pub(crate) fn optional(inner: Type) -> Type {
        Type::Optional(Arc::new(inner))
    }

    pub(crate) fn meta(of: Type) -> Type {
        Type::Meta(Arc::new(of))
    }

    /// Number of parts, counted no further than `limit`.
    pub(crate) fn parts(&self, limit: usize) -> usize {
        if limit == 0 {
            return 1;
        }
        match self {
            Type::List(inner) | Type::Optional(inner) | Type::Meta(inner) => {
                1 + inner.parts(limit - 1)
            }
            Type::Map(pair) => {
                let key = pair.0.parts(limit - 1);
                1 + key + pair.1.parts(limit.saturating_sub(1 + key))
            }
            _ => 1,
        }
    }

    /// Whether a variable is part of it.
    fn is_open(&self) -> bool {
        match self {
            Type::Var(_) => true,
            Type::List(inner) | Type::Optional(inner) | Type::Meta(inner) => inner.is_open(),
            Type::Map(pair) => pair.0.is_open() || pair.1.is_open(),
            _ => false,
        }
    }

    /// A signature's type with its parameters moved to the variables from `base` on.
    pub(crate) fn shifted(&self, base: u32) -> Type {
        match self {
            Type::Var(var) => Type::Var(base + var),
            _ if !self.is_open() => self.clone(),
            Type::List(inner) => Type::list(inner.shifted(base)),
            Type::Optional(inner) => Type::optional(inner.shifted(base)),
            Type::Meta(inner) => Type::meta(inner.shifted(base)),
            Type::Map(pair) => Type::map(pair.0.shifted(base), pair.1.shifted(base)),
            _ => self.clone(),
        }
    }

    /// Whether it says nothing of a value.
    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any)
    }

    /// Whether two types without parts are the same.
    fn same(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::List(_) | Type::Map(_) | Type::Optional(_) | Type::Var(_), _) => false,
            _ => self == other,
        }
    }

    /// The name by which results are told, which differs for a few.
    pub(crate) fn declared(&self) -> String {
        match self {
            Type::Null => "null_type".to_owned(),
            Type::Any => "google.protobuf.Any".to_owned(),
            Type::Duration => "google.protobuf.Duration".to_owned(),
            Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Type::List(inner) => format!("list({})", inner.declared()),
            Type::Map(pair) => format!("map({}, {})", pair.0.declared(), pair.1.declared()),
            Type::Optional(inner) => format!("optional_type({})", inner.declared()),
            Type::Meta(of) => format!("type({})", of.declared()),
            other => other.to_string(),
        }
    }

    fn nullable(&self) -> bool {
        matches!(
            self,
            Type::Quantity
                | Type::Semver
                | Type::Url
                | Type::Format
                | Type::Ip
                | Type::Cidr
                | Type::Authorization(_)
                | Type::Duration
                | Type::Timestamp
                | Type::Device
                | Type::Optional(_)
                | Type::Any
                | Type::Null
        )
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dyn | Type::Var(_) => f.write_str("dyn"),
            Type::Any => f.write_str("any"),
            Type::Error => f.write_str("!error!"),
            Type::Duration => f.write_str("duration"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Url => f.write_str("kubernetes.URL"),
            Type::Format => f.write_str("kubernetes.NamedFormat"),
            Type::Ip => f.write_str("net.IP"),
            Type::Cidr => f.write_str("net.CIDR"),
            Type::Authorization(kind) => write!(f, "kubernetes.authorization.{kind}"),
            Type::Null => f.write_str("null"),
            Type::Bool => f.write_str("bool"),
            Type::Int => f.write_str("int"),
            Type::Uint => f.write_str("uint"),
            Type::Double => f.write_str("double"),
            Type::Str => f.write_str("string"),
            Type::Bytes => f.write_str("bytes"),
            Type::Quantity => f.write_str("kubernetes.Quantity"),
            Type::Semver => f.write_str("kubernetes.Semver"),
            Type::Device => f.write_str("kubernetes.DRADevice"),
            Type::Meta(of) => write!(f, "type({of})"),
            Type::List(inner) => write!(f, "list({inner})"),
            Type::Map(pair) => write!(f, "map({}, {})", pair.0, pair.1),
            Type::Optional(inner) => write!(f, "optional_type({inner})"),
        }
    }
}

/// What the type variables stand for. A failed attempt is rolled back.
#[derive(Debug, Default)]
pub(crate) struct Unifier {
    bound: Vec<Option<Type>>,
    /// What a variable was before it was bound, for the roll back.
    trail: Vec<(u32, Option<Type>)>,
    /// Steps taken. Chains of variables can name a type that is far larger than the expression;
    /// past [`MAX_STEPS`] everything is taken for `dyn`, and the checker gives up.
    steps: Cell<u32>,
}

/// Far more than any expression of [`MAX_LENGTH`](crate::MAX_LENGTH) needs that is meant well.
const MAX_STEPS: u32 = 2_000_000;

impl Unifier {
    /// Whether the types have become too large to follow.
    pub(crate) fn exhausted(&self) -> bool {
        self.steps.get() >= MAX_STEPS
    }

    fn step(&self) -> bool {
        self.steps.set(self.steps.get().saturating_add(1));
        self.exhausted()
    }

    pub(crate) fn fresh(&mut self) -> Type {
        self.bound.push(None);
        Type::Var((self.bound.len() - 1) as u32)
    }

    /// Number of variables so far: the base for the parameters of a generic signature.
    pub(crate) fn reserve(&mut self, parameters: u32) -> u32 {
        let base = self.bound.len() as u32;
        self.bound.resize(self.bound.len() + parameters as usize, None);
        base
    }

    /// Whether `from` may be used where `to` is asked for; binds variables if so.
    pub(crate) fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.all_assignable([(from, to)])
    }

    /// [`Self::assignable`] for all pairs, or none of them.
    pub(crate) fn all_assignable<'t>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'t Type, &'t Type)>,
    ) -> bool {
        self.trail.clear();
        if pairs.into_iter().all(|(from, to)| self.unify(from, to)) {
            return true;
        }
        while let Some((var, before)) = self.trail.pop() {
            self.bound[var as usize] = before;
        }
        false
    }

    /// The type with all bound variables replaced; free ones stay.
    pub(crate) fn resolve(&self, t: &Type) -> Type {
        if self.step() {
            return Type::Dyn;
        }
        match t {
            _ if !t.is_open() => t.clone(),
            Type::Var(var) => match &self.bound[*var as usize] {
                Some(bound) => self.resolve(bound),
                None => t.clone(),
            },
            Type::List(inner) => Type::list(self.resolve(inner)),
            Type::Optional(inner) => Type::optional(self.resolve(inner)),
            Type::Meta(of) => Type::meta(self.resolve(of)),
            Type::Map(pair) => Type::map(self.resolve(&pair.0), self.resolve(&pair.1)),
            _ => t.clone(),
        }
    }

    fn bind(&mut self, var: u32, t: &Type) {
        self.trail.push((var, self.bound[var as usize].take()));
        self.bound[var as usize] = Some(t.clone());
    }

    /// Whether the variable occurs in the type, after resolution.
    fn occurs(&self, var: u32, t: &Type) -> bool {
        if self.step() {
            return true;
        }
        match t {
            Type::Var(other) if *other == var => true,
            Type::Var(other) => {
                self.bound[*other as usize].as_ref().is_some_and(|bound| self.occurs(var, bound))
            }
            Type::List(inner) | Type::Optional(inner) | Type::Meta(inner) => {
                self.occurs(var, inner)
            }
            Type::Map(pair) => self.occurs(var, &pair.0) || self.occurs(var, &pair.1),
            _ => false,
        }
    }

    /// Whether the variable may stand for the type; the second bool: whether it is bound.
    fn substitutes(&mut self, var: u32, t: &Type) -> (bool, bool) {
        if *t == Type::Var(var) {
            return (true, true);
        }
        let Some(bound) = self.bound[var as usize].clone() else {
            let possible = !self.occurs(var, t);
            if possible {
                self.bind(var, t);
            }
            return (possible, false);
        };
        if *t == bound {
            return (true, true);
        }
        if !self.unify(t, &bound) {
            return (false, true);
        }
        let general = if self.less_specific(t, &bound) { t.clone() } else { bound };
        if !self.occurs(var, &general) {
            self.bind(var, &general);
        }
        (true, true)
    }

    fn unify(&mut self, from: &Type, to: &Type) -> bool {
        if self.step() {
            return true;
        }
        if let Type::Var(var) = to {
            let (valid, bound) = self.substitutes(*var, from);
            if valid || bound {
                return valid;
            }
        }
        if let Type::Var(var) = from {
            return self.substitutes(*var, to).0;
        }
        match (from, to) {
            (Type::Dyn | Type::Any | Type::Error, _) | (_, Type::Dyn | Type::Any | Type::Error) => {
                true
            }
            (Type::Null, other) | (other, Type::Null) => other.nullable(),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.unify(a, b)
            }
            (Type::Map(a), Type::Map(b)) => self.unify(&a.0, &b.0) && self.unify(&a.1, &b.1),
            _ => from.same(to),
        }
    }

    /// Whether the first says no more than the second.
    pub(crate) fn less_specific(&self, a: &Type, b: &Type) -> bool {
        match (a, b) {
            (Type::Dyn | Type::Any | Type::Var(_), _) => true,
            (_, Type::Dyn | Type::Any | Type::Var(_)) => false,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.less_specific(a, b)
            }
            (Type::Map(a), Type::Map(b)) => {
                self.less_specific(&a.0, &b.0) && self.less_specific(&a.1, &b.1)
            }
            _ => a.same(b),
        }
    }
}

/// Replaces the variables that are left by `dyn`.
pub(crate) fn settle(t: &Type) -> Type {
    match t {
        Type::Var(_) => Type::Dyn,
        _ if !t.is_open() => t.clone(),
        Type::List(inner) => Type::list(settle(inner)),
        Type::Optional(inner) => Type::optional(settle(inner)),
        Type::Meta(of) => Type::meta(settle(of)),
        Type::Map(pair) => Type::map(settle(&pair.0), settle(&pair.1)),
        _ => t.clone(),
    }
}
