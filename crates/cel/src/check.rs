//! The type checker: what each name means, which variants of a function fit, and whether the
//! whole gives a bool, as Kubernetes' compiler would say, with its words and its columns, before
//! any device is looked at.
//!
//! It stops at the first fault. Constant conversions and regular expressions are left to
//! [`lower`](crate::lower), which computes them.

use std::fmt::Write as _;

use crate::Environment;
use crate::ast::{
    Arithmetic, Ast, Binary, Comparison, Element, Entry, Fold, FoldKind, Kind, NodeId,
};
use crate::error::{CompileError, CompileErrorKind};
use crate::functions::signatures::{Function, PARAMETERS, Signature, signatures};
use crate::hints;
use crate::types::{MAX_TYPE_PARTS, Type, Unifier, settle};

/// What a name or a call was found to mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    None,
    /// The variable `device`.
    Device,
    /// A variable of a macro, by its slot.
    Local(u32),
    /// The name of a type, as a value.
    Type(&'static str),
    /// A call; whether its target is an argument (or only a prefix of the name).
    Call(Function, bool),
}

/// Functions of Kubernetes' libraries that are left out so far: time, formats, URLs, addresses.
const UNSUPPORTED: [&str; 26] = [
    "cidr",
    "containsCIDR",
    "containsIP",
    "duration",
    "family",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHost",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "ip",
    "isCIDR",
    "isIP",
    "isURL",
    "sortBy",
    "timestamp",
    "transformMapEntry",
    "url",
    "validate",
];

/// The result: one entry per node of the tree.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) types: Vec<Type>,
    pub(crate) meanings: Vec<Meaning>,
}

/// Checks the whole expression, which has to give a bool, or a value of unknown type.
pub(crate) fn check(
    source: &str,
    ast: &Ast,
    environment: &Environment,
) -> Result<Checked, CompileError> {
    let count = ast.nodes.len();
    let mut checker = Checker {
        source,
        ast,
        environment,
        unifier: Unifier::default(),
        types: vec![Type::Dyn; count],
        meanings: vec![Meaning::None; count],
        scope: Vec::new(),
    };
    checker.check(ast.root)?;
    if checker.unifier.exhausted() {
        return Err(checker.too_large(ast.root));
    }
    for t in &mut checker.types {
        *t = settle(&checker.unifier.resolve(t));
    }
    checker.homogeneous()?;
    let result = &checker.types[ast.root as usize];
    if !matches!(result, Type::Bool | Type::Dyn) {
        let name = match result {
            Type::Null => "null_type".to_owned(),
            other => other.to_string(),
        };
        let message = format!("must evaluate to bool or the unknown type, not {name}");
        let hint = hints::not_bool(result);
        return Err(checker.error(CompileErrorKind::NotBool, ast.root, message).with_hint(hint));
    }
    Ok(Checked { types: checker.types, meanings: checker.meanings })
}

struct Checker<'a> {
    source: &'a str,
    ast: &'a Ast,
    environment: &'a Environment,
    unifier: Unifier,
    types: Vec<Type>,
    meanings: Vec<Meaning>,
    /// Variables of the macros around the current node; a variable's slot is its place here.
    scope: Vec<(&'a str, Type)>,
}

type Checking<T> = Result<T, CompileError>;

impl<'a> Checker<'a> {
    fn error(&self, kind: CompileErrorKind, id: NodeId, message: String) -> CompileError {
        let node = self.ast.node(id);
        CompileError::new(kind, self.source, node.at, (node.start, node.end), message)
    }

    fn too_large(&self, id: NodeId) -> CompileError {
        let message = "the type of this expression is too large to check".to_owned();
        self.error(CompileErrorKind::TooDeep, id, message)
    }

    fn mismatch(&self, id: NodeId, expected: &Type, found: &Type) -> CompileError {
        let expected = settle(&self.unifier.resolve(expected));
        let found = settle(&self.unifier.resolve(found));
        let message = format!("expected type '{expected}' but found '{found}'");
        let error = self.error(CompileErrorKind::WrongType, id, message);
        error.with_hint(hints::mixed(&expected, &found))
    }

    /// Checks a node and those below it, and gives its type.
    fn check(&mut self, id: NodeId) -> Checking<Type> {
        let ast = self.ast;
        let t = match &ast.node(id).kind {
            Kind::Null => Type::Null,
            Kind::Bool(_) => Type::Bool,
            Kind::Int(_) => Type::Int,
            Kind::Uint(_) => Type::Uint,
            Kind::Double(_) => Type::Double,
            Kind::Str(_) => Type::Str,
            Kind::Bytes(_) => Type::Bytes,
            Kind::Ident(name) => self.ident(id, name)?,
            Kind::Select { operand, field, optional } => {
                self.select(id, *operand, field, *optional)?
            }
            Kind::Has { operand, field } => {
                self.select(id, *operand, field, false)?;
                Type::Bool
            }
            Kind::Index { operand, index, optional } => {
                let name = if *optional { "_[?_]" } else { "_[_]" };
                self.operator(id, name, &[*operand, *index])?
            }
            Kind::Call { target, function, args } => self.call(id, *target, function, args)?,
            Kind::Not(operand) => self.operator(id, "!_", &[*operand])?,
            Kind::Negate(operand) => self.operator(id, "-_", &[*operand])?,
            Kind::Binary(operator, left, right) => {
                self.operator(id, binary_name(*operator), &[*left, *right])?
            }
            Kind::And(terms) | Kind::Or(terms) => self.logical(terms)?,
            Kind::Conditional { condition, then, other } => {
                self.operator(id, "_?_:_", &[*condition, *then, *other])?
            }
            Kind::List(elements) => self.list(elements)?,
            Kind::Map(entries) => self.map(entries)?,
            Kind::Fold(fold) => self.fold(id, fold)?,
            Kind::Bind { var, init, body } => {
                let t = self.check(*init)?;
                self.scoped(&[(var, t)], *body)?
            }
            Kind::OptMap { target, var, body, flat } => {
                self.opt_map(id, *target, var, *body, *flat)?
            }
        };
        let t = self.unifier.resolve(&t);
        if t.parts(MAX_TYPE_PARTS) > MAX_TYPE_PARTS {
            return Err(self.too_large(id));
        }
        self.types[id as usize] = t.clone();
        Ok(t)
    }

    fn check_all(&mut self, ids: &[NodeId]) -> Checking<Vec<Type>> {
        ids.iter().map(|id| self.check(*id)).collect()
    }

    fn scoped(&mut self, variables: &[(&'a str, Type)], body: NodeId) -> Checking<Type> {
        let outside = self.scope.len();
        self.scope.extend_from_slice(variables);
        let t = self.check(body);
        self.scope.truncate(outside);
        t
    }

    fn ident(&mut self, id: NodeId, name: &str) -> Checking<Type> {
        if let Some(slot) = self.scope.iter().rposition(|(n, _)| *n == name) {
            self.meanings[id as usize] = Meaning::Local(slot as u32);
            return Ok(self.scope[slot].1.clone());
        }
        let global = name.strip_prefix('.').unwrap_or(name);
        if global == "device" {
            self.meanings[id as usize] = Meaning::Device;
            return Ok(Type::Device);
        }
        let types = [
            "bool",
            "bytes",
            "double",
            "int",
            "list",
            "map",
            "null_type",
            "string",
            "type",
            "uint",
        ];
        if let Some(found) = types.into_iter().find(|t| *t == global) {
            self.meanings[id as usize] = Meaning::Type(found);
            return Ok(Type::Meta);
        }
        let message = format!("undeclared reference to '{name}' (in container '')");
        let error = self.error(CompileErrorKind::UndeclaredReference, id, message);
        Err(error.with_hint(Some(hints::undeclared_name(self.ast, id, name))))
    }

    fn select(
        &mut self,
        id: NodeId,
        operand: NodeId,
        field: &str,
        optional: bool,
    ) -> Checking<Type> {
        let t = self.check(operand)?;
        let (target, wrapped) = match &t {
            Type::Optional(inner) => (self.unifier.resolve(inner), true),
            _ => (t, false),
        };
        let result = match &target {
            Type::Map(pair) => pair.1.clone(),
            Type::Device => self.device_field(id, field)?,
            Type::Dyn => Type::Dyn,
            Type::Var(_) => {
                self.unifier.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            _ => {
                let message = format!("type '{target}' does not support field selection");
                let error = self.error(CompileErrorKind::WrongType, id, message);
                return Err(error.with_hint(hints::no_fields(&target)));
            }
        };
        Ok(if wrapped || optional { Type::optional(result) } else { result })
    }

    fn device_field(&self, id: NodeId, field: &str) -> Checking<Type> {
        match field {
            "driver" => Ok(Type::Str),
            "allowMultipleAllocations" => Ok(Type::Bool),
            "attributes" => Ok(Type::map(Type::Str, Type::map(Type::Str, Type::Dyn))),
            "capacity" => Ok(Type::map(Type::Str, Type::map(Type::Str, Type::Quantity))),
            _ => {
                let message = format!("undefined field '{field}'");
                let error = self.error(CompileErrorKind::UndefinedField, id, message);
                Err(error.with_hint(Some(hints::undefined_field(field))))
            }
        }
    }

    fn operator(&mut self, id: NodeId, name: &'static str, operands: &[NodeId]) -> Checking<Type> {
        let types = self.check_all(operands)?;
        match self.resolve(signatures(name), false, &types) {
            Some((_, result)) => Ok(result),
            None => Err(self.no_overload(id, name, &types, false, operands)),
        }
    }

    fn call(
        &mut self,
        id: NodeId,
        target: Option<NodeId>,
        name: &str,
        args: &[NodeId],
    ) -> Checking<Type> {
        let mut types = Vec::with_capacity(args.len() + 1);
        let mut operands = Vec::with_capacity(args.len() + 1);
        let qualified = target.and_then(|target| self.qualified(target, name));
        let (name, found, receiver) = match (target, &qualified) {
            (None, _) => (name, signatures(name), false),
            (Some(_), Some(qualified)) if !signatures(qualified).is_empty() => {
                (qualified.as_str(), signatures(qualified), false)
            }
            (Some(target), _) => {
                types.push(self.check(target)?);
                operands.push(target);
                (name, signatures(name), true)
            }
        };
        if !found.iter().any(|s| self.known(s)) {
            return Err(self.unknown_function(id, name, receiver));
        }
        types.extend(self.check_all(args)?);
        operands.extend_from_slice(args);
        match self.resolve(found, receiver, &types) {
            Some((Some(function), result)) => {
                self.meanings[id as usize] = Meaning::Call(function, receiver);
                Ok(result)
            }
            Some((None, _)) | None => Err(self.no_overload(id, name, &types, receiver, &operands)),
        }
    }

    fn unknown_function(&self, id: NodeId, name: &str, receiver: bool) -> CompileError {
        if UNSUPPORTED.contains(&name) {
            let message = format!(
                "Kubernetes has the function '{name}', but it is not supported here: whether the \
                 expression selects a device is not known"
            );
            return self.error(CompileErrorKind::Unsupported, id, message);
        }
        let message = format!("undeclared reference to '{name}' (in container '')");
        let error = self.error(CompileErrorKind::UndeclaredReference, id, message);
        error.with_hint(hints::undeclared_function(name, receiver))
    }

    fn known(&self, signature: &Signature) -> bool {
        signature.since <= self.environment.version
    }

    /// `sets.contains` for the target `sets` and the name `contains`.
    fn qualified(&self, target: NodeId, name: &str) -> Option<String> {
        match &self.ast.node(target).kind {
            Kind::Ident(prefix) => Some(format!("{prefix}.{name}")),
            _ => None,
        }
    }

    /// The first variant that fits, and the type of the result: `dyn` where several fit whose
    /// results differ.
    fn resolve(
        &mut self,
        variants: &[Signature],
        receiver: bool,
        types: &[Type],
    ) -> Option<(Option<Function>, Type)> {
        let mut found: Option<(Option<Function>, Type)> = None;
        for variant in variants {
            let fits = variant.receiver == receiver && variant.arguments.len() == types.len();
            if !fits || !self.known(variant) {
                continue;
            }
            let base = self.unifier.reserve(PARAMETERS);
            let wanted: Vec<Type> = variant.arguments.iter().map(|t| shift(t, base)).collect();
            let pairs: Vec<(&Type, &Type)> = types.iter().zip(&wanted).collect();
            if !self.unifier.all_assignable(&pairs) {
                continue;
            }
            let result = self.unifier.resolve(&shift(&variant.result, base));
            match &mut found {
                None => found = Some((variant.function, result)),
                Some((_, first)) if *first != Type::Dyn && *first != result => *first = Type::Dyn,
                Some(_) => {}
            }
        }
        found
    }

    fn no_overload(
        &self,
        id: NodeId,
        name: &str,
        types: &[Type],
        receiver: bool,
        operands: &[NodeId],
    ) -> CompileError {
        let types: Vec<Type> = types.iter().map(|t| settle(&self.unifier.resolve(t))).collect();
        let mut applied = String::new();
        let listed = if receiver { &types[1..] } else { &types[..] };
        let listed: Vec<String> = listed.iter().map(Type::to_string).collect();
        if let (true, Some(first)) = (receiver, types.first()) {
            // A text cannot fail to take more text.
            let _ = write!(applied, "{first}.");
        }
        let _ = write!(applied, "({})", listed.join(", "));
        let message = format!("found no matching overload for '{name}' applied to '{applied}'");
        let error = self.error(CompileErrorKind::NoSuchOverload, id, message);
        error.with_hint(hints::no_overload(self.source, self.ast, name, &types, operands))
    }

    fn logical(&mut self, terms: &[NodeId]) -> Checking<Type> {
        let types = self.check_all(terms)?;
        for (term, t) in terms.iter().zip(&types) {
            self.expect_bool(*term, t)?;
        }
        Ok(Type::Bool)
    }

    fn expect_bool(&mut self, id: NodeId, t: &Type) -> Checking<()> {
        if self.unifier.assignable(t, &Type::Bool) {
            Ok(())
        } else {
            Err(self.mismatch(id, &Type::Bool, t))
        }
    }

    /// The common type of the elements of a literal so far.
    fn join(&mut self, id: NodeId, previous: Option<Type>, current: Type) -> Checking<Type> {
        let Some(previous) = previous else { return Ok(current) };
        if !self.unifier.assignable(&previous, &current) {
            return Err(self.mismatch(id, &previous, &current));
        }
        let keep = self.unifier.less_specific(&previous, &current);
        Ok(if keep { previous } else { current })
    }

    fn element(&mut self, id: NodeId, optional: bool) -> Checking<Type> {
        let t = self.check(id)?;
        match (optional, &t) {
            (false, _) | (true, Type::Dyn) => Ok(t),
            (true, Type::Optional(inner)) => Ok((**inner).clone()),
            (true, _) => Err(self.mismatch(id, &Type::optional(t.clone()), &t)),
        }
    }

    fn list(&mut self, elements: &[Element]) -> Checking<Type> {
        let mut common = None;
        for element in elements {
            let t = self.element(element.value, element.optional)?;
            common = Some(self.join(element.value, common, t)?);
        }
        Ok(Type::list(common.unwrap_or_else(|| self.unifier.fresh())))
    }

    fn map(&mut self, entries: &[Entry]) -> Checking<Type> {
        let (mut key, mut value) = (None, None);
        for entry in entries {
            let t = self.check(entry.key)?;
            key = Some(self.join(entry.key, key, t)?);
            let t = self.element(entry.value, entry.optional)?;
            value = Some(self.join(entry.value, value, t)?);
        }
        let key = key.unwrap_or_else(|| self.unifier.fresh());
        let value = value.unwrap_or_else(|| self.unifier.fresh());
        Ok(Type::map(key, value))
    }

    /// Types of the one or two variables of a fold over the range.
    fn variables(&mut self, range: NodeId, two: bool) -> Checking<(Type, Type)> {
        let t = self.check(range)?;
        match &t {
            Type::List(inner) if two => Ok((Type::Int, (**inner).clone())),
            Type::List(inner) => Ok(((**inner).clone(), Type::Dyn)),
            Type::Map(pair) => Ok((pair.0.clone(), pair.1.clone())),
            Type::Dyn => Ok((Type::Dyn, Type::Dyn)),
            Type::Var(_) => {
                self.unifier.assignable(&Type::Dyn, &t);
                Ok((Type::Dyn, Type::Dyn))
            }
            _ => {
                let message = format!(
                    "expression of type '{t}' cannot be range of a comprehension (must be list, \
                     map, or dynamic)"
                );
                Err(self.error(CompileErrorKind::WrongType, range, message))
            }
        }
    }

    fn fold(&mut self, id: NodeId, fold: &'a Fold) -> Checking<Type> {
        let (first, second) = self.variables(fold.range, fold.var2.is_some())?;
        let mut variables = vec![(fold.var.as_str(), first.clone())];
        if let Some(var2) = &fold.var2 {
            variables.push((var2, second));
        }
        if let Some(filter) = fold.filter {
            let t = self.scoped(&variables, filter)?;
            self.condition(id, &t)?;
        }
        let body = self.scoped(&variables, fold.body)?;
        match fold.kind {
            FoldKind::All | FoldKind::Exists => {
                self.expect_bool(fold.body, &body)?;
                Ok(Type::Bool)
            }
            FoldKind::ExistsOne => {
                self.condition(id, &body)?;
                Ok(Type::Bool)
            }
            FoldKind::Filter => {
                self.condition(id, &body)?;
                Ok(Type::list(first))
            }
            FoldKind::Map => Ok(Type::list(body)),
            FoldKind::MapValues => Ok(Type::map(first, body)),
        }
    }

    /// The predicate of a macro that expands to a conditional.
    fn condition(&mut self, id: NodeId, t: &Type) -> Checking<()> {
        if self.unifier.assignable(t, &Type::Bool) {
            return Ok(());
        }
        let t = settle(&self.unifier.resolve(t));
        let message =
            format!("found no matching overload for '_?_:_' applied to '({t}, dyn, dyn)'");
        let error = self.error(CompileErrorKind::NoSuchOverload, id, message);
        Err(error.with_hint(Some("The condition of this macro must be a bool".to_owned())))
    }

    fn opt_map(
        &mut self,
        id: NodeId,
        target: NodeId,
        var: &'a str,
        body: NodeId,
        flat: bool,
    ) -> Checking<Type> {
        let t = self.check(target)?;
        let inner = self.unifier.fresh();
        if !self.unifier.assignable(&t, &Type::optional(inner.clone())) {
            return Err(self.no_overload(id, "hasValue", &[t], true, &[target]));
        }
        let inner = self.unifier.resolve(&inner);
        let result = self.scoped(&[(var, inner)], body)?;
        if !flat {
            return Ok(Type::optional(result));
        }
        let wanted = Type::optional(self.unifier.fresh());
        match self.unifier.assignable(&result, &wanted) {
            true => Ok(self.unifier.resolve(&wanted)),
            false => Err(self.mismatch(body, &wanted, &result)),
        }
    }

    /// Kubernetes wants all elements of a literal to have one type, `dyn` counting as one.
    fn homogeneous(&self) -> Checking<()> {
        let mismatch = |id: NodeId, expected: NodeId| {
            let (expected, found) = (&self.types[expected as usize], &self.types[id as usize]);
            Err(self.mismatch(id, expected, found))
        };
        let equal = |a: NodeId, a_optional: bool, b: NodeId, b_optional: bool| {
            let t = |id: NodeId, optional: bool| match &self.types[id as usize] {
                Type::Optional(inner) if optional => (**inner).clone(),
                other => other.clone(),
            };
            t(a, a_optional) == t(b, b_optional)
        };
        for node in &self.ast.nodes {
            if let Kind::List(elements) = &node.kind {
                let Some(first) = elements.first() else { continue };
                for e in elements {
                    if !equal(first.value, first.optional, e.value, e.optional) {
                        return mismatch(e.value, first.value);
                    }
                }
            }
            if let Kind::Map(entries) = &node.kind {
                let Some(first) = entries.first() else { continue };
                for e in entries {
                    if !equal(first.key, false, e.key, false) {
                        return mismatch(e.key, first.key);
                    }
                    if !equal(first.value, first.optional, e.value, e.optional) {
                        return mismatch(e.value, first.value);
                    }
                }
            }
        }
        Ok(())
    }
}

/// A signature's type with its parameters moved to fresh variables.
fn shift(t: &Type, base: u32) -> Type {
    match t {
        Type::Var(var) => Type::Var(base + var),
        Type::List(inner) => Type::list(shift(inner, base)),
        Type::Optional(inner) => Type::optional(shift(inner, base)),
        Type::Map(pair) => Type::map(shift(&pair.0, base), shift(&pair.1, base)),
        _ => t.clone(),
    }
}

/// A binary operator's name in Kubernetes' error texts.
fn binary_name(operator: Binary) -> &'static str {
    match operator {
        Binary::Arithmetic(Arithmetic::Add) => "_+_",
        Binary::Arithmetic(Arithmetic::Sub) => "_-_",
        Binary::Arithmetic(Arithmetic::Mul) => "_*_",
        Binary::Arithmetic(Arithmetic::Div) => "_/_",
        Binary::Arithmetic(Arithmetic::Mod) => "_%_",
        Binary::Compare(Comparison::Less) => "_<_",
        Binary::Compare(Comparison::LessOrEqual) => "_<=_",
        Binary::Compare(Comparison::Greater) => "_>_",
        Binary::Compare(Comparison::GreaterOrEqual) => "_>=_",
        Binary::Equal => "_==_",
        Binary::NotEqual => "_!=_",
        Binary::In => "@in",
    }
}
