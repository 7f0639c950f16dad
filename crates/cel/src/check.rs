//! The type checker: what each name means, which variants of a function fit, and whether the
//! whole gives a bool, as Kubernetes' compiler would say, with its words and its columns, before
//! any device is looked at.
//!
//! A part that has a fault counts as fitting everywhere, so that each fault is found; the first of
//! them by its place is told. Constant conversions and regular expressions are left to
//! [`lower`](crate::lower), which computes them.

use std::fmt::Write as _;

use crate::ast::{
    Arithmetic, Ast, Binary, Comparison, Element, Entry, Fold, FoldKind, Kind, NodeId, dotted, root,
};
use crate::error::{CompileError, CompileErrorKind};
use crate::functions::signatures::{Function, PARAMETERS, Signature, signatures};
use crate::functions::time::{self, Timestamp};
use crate::functions::{format, regex};
use crate::hints;
use crate::types::{MAX_TYPE_PARTS, Type, Unifier, settle};
use crate::{Environment, Expressions};

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

/// What the value of the expression is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// To select devices.
    Selector,
    /// To be an attribute.
    Attribute,
}

/// The result: one entry per node of the tree.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) types: Vec<Type>,
    pub(crate) meanings: Vec<Meaning>,
    /// The variants of a call or an operator that fit.
    pub(crate) candidates: Vec<Vec<&'static Signature>>,
}

/// Checks the whole expression, which has to give a bool, or a value of unknown type.
pub(crate) fn check(
    source: &str,
    ast: &Ast,
    environment: &Environment,
    wanted: Use,
) -> Result<Checked, CompileError> {
    let count = ast.nodes.len();
    let mut checker = Checker {
        source,
        ast,
        environment,
        unifier: Unifier::default(),
        types: vec![Type::Dyn; count],
        meanings: vec![Meaning::None; count],
        candidates: vec![Vec::new(); count],
        scope: Vec::new(),
        errors: Vec::new(),
    };
    checker.check(ast.root);
    if checker.unifier.exhausted() {
        return Err(checker.too_large(ast.root));
    }
    checker.fail()?;
    for t in &mut checker.types {
        *t = settle(&checker.unifier.resolve(t));
    }
    checker.homogeneous();
    format::check(&mut checker);
    checker.literals();
    checker.fail()?;
    checker.result(wanted)?;
    Ok(Checked { types: checker.types, meanings: checker.meanings, candidates: checker.candidates })
}

pub(crate) struct Checker<'a> {
    source: &'a str,
    ast: &'a Ast,
    environment: &'a Environment,
    unifier: Unifier,
    types: Vec<Type>,
    meanings: Vec<Meaning>,
    candidates: Vec<Vec<&'static Signature>>,
    /// Variables of the macros around the current node; a variable's slot is its place here.
    scope: Vec<(&'a str, Type)>,
    errors: Vec<CompileError>,
}

/// Faults that are noted; the first of so many is the first of all, but for hostile texts.
const MAX_ERRORS: usize = 100;

impl<'a> Checker<'a> {
    /// Notes a fault, and gives the type of what has it.
    fn report(&mut self, error: CompileError) -> Type {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
        Type::Error
    }

    /// The first fault by its place, if there is one.
    fn fail(&mut self) -> Result<(), CompileError> {
        let errors = std::mem::take(&mut self.errors);
        errors.into_iter().min_by_key(|error| (error.line, error.column)).map_or(Ok(()), Err)
    }

    fn error(&self, kind: CompileErrorKind, id: NodeId, message: String) -> CompileError {
        let node = self.ast.node(id);
        CompileError::new(kind, self.source, node.at, (node.start, node.end), message)
    }

    /// Whether the whole has a type that its use can take.
    fn result(&self, wanted: Use) -> Result<(), CompileError> {
        let root = self.ast.root;
        let result = &self.types[root as usize];
        let name = result.declared();
        let lists = match self.environment.expressions {
            Expressions::Stored => true,
            Expressions::New(gates) => gates.list_type_attributes,
        };
        match wanted {
            Use::Selector if *result == Type::Bool || *result == self.attribute() => Ok(()),
            Use::Selector => {
                let message = format!("must evaluate to bool or the unknown type, not {name}");
                let error = self.error(CompileErrorKind::NotBool, root, message);
                Err(error.with_hint(hints::not_bool(result)))
            }
            Use::Attribute => {
                let element = match result {
                    Type::List(element) if lists => element,
                    other => other,
                };
                let scalar = [Type::Bool, Type::Int, Type::Str, Type::Dyn, Type::Any, Type::Semver];
                if scalar.contains(element) {
                    return Ok(());
                }
                let or_list = if lists { " or a list of these scalars" } else { "" };
                let message = format!(
                    "must evaluate to a primitive scalar (string, integer, boolean, \
                     semver){or_list}, not {name}"
                );
                Err(self.error(CompileErrorKind::NotAttribute, root, message))
            }
        }
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

    /// What an attribute's value is: lists were allowed late.
    fn attribute(&self) -> Type {
        if self.environment.knows_lists() { Type::Dyn } else { Type::Any }
    }

    /// Checks a node and those below it, and gives its type.
    fn check(&mut self, id: NodeId) -> Type {
        let ast = self.ast;
        let t = match &ast.node(id).kind {
            Kind::Null => Type::Null,
            Kind::Bool(_) => Type::Bool,
            Kind::Int(_) => Type::Int,
            Kind::Uint(_) => Type::Uint,
            Kind::Double(_) => Type::Double,
            Kind::Str(_) => Type::Str,
            Kind::Bytes(_) => Type::Bytes,
            Kind::Ident(name) => self.ident(id, name),
            Kind::Select { operand, field, optional } => {
                match self.type_name(id).filter(|_| !optional) {
                    Some(name) => {
                        self.meanings[id as usize] = Meaning::Type(name);
                        Type::meta(named(name))
                    }
                    None => self.select(id, *operand, field, *optional),
                }
            }
            Kind::Has { operand, field } => {
                self.select(id, *operand, field, false);
                Type::Bool
            }
            Kind::Index { operand, index, optional } => {
                let name = if *optional { "_[?_]" } else { "_[_]" };
                self.operator(id, name, &[*operand, *index])
            }
            Kind::Call { target, function, args } => self.call(id, *target, function, args),
            Kind::Not(operand) => self.operator(id, "!_", &[*operand]),
            Kind::Negate(operand) => self.operator(id, "-_", &[*operand]),
            Kind::Binary(operator, left, right) => {
                self.operator(id, binary_name(*operator), &[*left, *right])
            }
            Kind::And(terms) | Kind::Or(terms) => self.logical(terms),
            Kind::Conditional { condition, then, other } => {
                self.operator(id, "_?_:_", &[*condition, *then, *other])
            }
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::Fold(fold) => self.fold(id, fold),
            Kind::Bind { var, init, body } => {
                let t = self.check(*init);
                self.scoped(&[(var, t)], *body)
            }
            Kind::OptMap { target, var, body, flat } => {
                self.opt_map(id, *target, var, *body, *flat)
            }
        };
        let resolved = self.unifier.resolve(&t);
        let large = resolved.parts(MAX_TYPE_PARTS) > MAX_TYPE_PARTS;
        // The elements of a literal may still turn out to be more general.
        let literal = matches!(ast.node(id).kind, Kind::List(_) | Kind::Map(_));
        let t = match (large, literal) {
            (true, _) => {
                let error = self.too_large(id);
                self.report(error)
            }
            (false, true) => t,
            (false, false) => resolved,
        };
        self.types[id as usize] = t.clone();
        t
    }

    fn check_all(&mut self, ids: &[NodeId]) -> Vec<Type> {
        ids.iter().map(|id| self.check(*id)).collect()
    }

    fn scoped(&mut self, variables: &[(&'a str, Type)], body: NodeId) -> Type {
        let outside = self.scope.len();
        self.scope.extend_from_slice(variables);
        let t = self.check(body);
        self.scope.truncate(outside);
        t
    }

    fn ident(&mut self, id: NodeId, name: &str) -> Type {
        if let Some(slot) = self.scope.iter().rposition(|(n, _)| *n == name) {
            self.meanings[id as usize] = Meaning::Local(slot as u32);
            return self.scope[slot].1.clone();
        }
        let global = name.strip_prefix('.').unwrap_or(name);
        if global == "device" {
            self.meanings[id as usize] = Meaning::Device;
            return Type::Device;
        }
        if let Some(found) = TYPES.into_iter().find(|t| *t == global) {
            self.meanings[id as usize] = Meaning::Type(found);
            return Type::meta(named(found));
        }
        let message = format!("undeclared reference to '{name}' (in container '')");
        let error = self.error(CompileErrorKind::UndeclaredReference, id, message);
        let hint = hints::undeclared_name(self.ast, id, name);
        self.report(error.with_hint(Some(hint)))
    }

    /// The type that a path such as `net.IP` names.
    fn type_name(&self, id: NodeId) -> Option<&'static str> {
        let root = root(&self.ast.nodes, id)?;
        if !NAMESPACES.contains(&root.trim_start_matches('.')) {
            return None;
        }
        let name = dotted(&self.ast.nodes, id)?;
        let (first, _) = name.split_once('.')?;
        if self.scope.iter().any(|(variable, _)| *variable == first) {
            return None;
        }
        let known = DOTTED_TYPES.into_iter().chain(NAMES_ONLY);
        known.into_iter().find(|known| *known == name.trim_start_matches('.'))
    }

    fn select(&mut self, id: NodeId, operand: NodeId, field: &str, optional: bool) -> Type {
        let t = self.check(operand);
        let t = self.unifier.resolve(&t);
        let (target, wrapped) = match &t {
            Type::Optional(inner) => (self.unifier.resolve(inner), true),
            _ => (t, false),
        };
        let result = match &target {
            Type::Map(pair) => pair.1.clone(),
            Type::Device => self.device_field(id, field),
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            Type::Var(_) => {
                self.unifier.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Url | Type::Quantity | Type::Semver | Type::Format | Type::Authorization(_) => {
                let message = format!("unexpected failed resolution of '{target}'");
                let error = self.error(CompileErrorKind::WrongType, id, message);
                self.report(error.with_hint(hints::no_fields(&target)))
            }
            _ => {
                let message = format!("type '{target}' does not support field selection");
                let error = self.error(CompileErrorKind::WrongType, id, message);
                self.report(error.with_hint(hints::no_fields(&target)));
                Type::Dyn
            }
        };
        if wrapped || optional { Type::optional(result) } else { result }
    }

    fn device_field(&mut self, id: NodeId, field: &str) -> Type {
        match field {
            "driver" => Type::Str,
            "allowMultipleAllocations" if self.environment.knows_sharing() => Type::Bool,
            "attributes" => Type::map(Type::Str, Type::map(Type::Str, self.attribute())),
            "capacity" => Type::map(Type::Str, Type::map(Type::Str, Type::Quantity)),
            _ => {
                let message = format!("undefined field '{field}'");
                let error = self.error(CompileErrorKind::UndefinedField, id, message);
                self.report(error.with_hint(Some(hints::undefined_field(field))))
            }
        }
    }

    fn operator(&mut self, id: NodeId, name: &'static str, operands: &[NodeId]) -> Type {
        let types = self.check_all(operands);
        match self.resolve(id, signatures(name), false, &types) {
            Some((_, result)) => result,
            None => self.no_overload(id, name, &types, false, operands),
        }
    }

    fn call(&mut self, id: NodeId, target: Option<NodeId>, name: &str, args: &[NodeId]) -> Type {
        let arguments = self.check_all(args);
        let mut types = Vec::with_capacity(args.len() + 1);
        let mut operands = Vec::with_capacity(args.len() + 1);
        let qualified = target.and_then(|target| {
            dotted(&self.ast.nodes, target).map(|prefix| format!("{prefix}.{name}"))
        });
        let (name, found, receiver) = match (target, &qualified) {
            (None, _) => (name, signatures(name), false),
            (Some(_), Some(qualified)) if !signatures(qualified).is_empty() => {
                (qualified.as_str(), signatures(qualified), false)
            }
            (Some(target), _) => {
                types.push(self.check(target));
                operands.push(target);
                (name, signatures(name), true)
            }
        };
        if !found.iter().any(|s| self.known(s)) {
            let error = self.unknown_function(id, name, receiver);
            return self.report(error);
        }
        types.extend(arguments);
        operands.extend_from_slice(args);
        match self.resolve(id, found, receiver, &types) {
            Some((Some(function), result)) => {
                self.meanings[id as usize] = Meaning::Call(function, receiver);
                result
            }
            Some((None, _)) | None => self.no_overload(id, name, &types, receiver, &operands),
        }
    }

    fn unknown_function(&self, id: NodeId, name: &str, receiver: bool) -> CompileError {
        let message = format!("undeclared reference to '{name}' (in container '')");
        let error = self.error(CompileErrorKind::UndeclaredReference, id, message);
        error.with_hint(hints::undeclared_function(name, receiver))
    }

    fn known(&self, signature: &Signature) -> bool {
        match signature.function {
            Some(Function::Includes) => self.environment.knows_lists(),
            _ => signature.since <= self.environment.functions(),
        }
    }

    /// The first variant that fits, and the type of the result: `dyn` where several fit whose
    /// results differ.
    fn resolve(
        &mut self,
        id: NodeId,
        variants: &'static [Signature],
        receiver: bool,
        types: &[Type],
    ) -> Option<(Option<Function>, Type)> {
        let mut found: Option<(Option<Function>, Type)> = None;
        // An API server knows the functions of lists before those of texts that have their names.
        let stored = self.environment.expressions == Expressions::Stored;
        let lists_first = move |variant: &Signature| {
            let list = matches!(variant.arguments.first(), Some(Type::List(_)));
            let shared =
                matches!(variant.function, Some(Function::IndexOf | Function::LastIndexOf));
            !(list && shared && !stored)
        };
        let passes = [false, true].into_iter();
        let ordered = passes
            .flat_map(|last| variants.iter().filter(move |variant| lists_first(variant) == last));
        let mut wanted: Vec<Type> = Vec::with_capacity(types.len());
        for variant in ordered {
            let fits = variant.receiver == receiver && variant.arguments.len() == types.len();
            if !fits || !self.known(variant) {
                continue;
            }
            let base = self.unifier.reserve(PARAMETERS);
            wanted.clear();
            wanted.extend(variant.arguments.iter().map(|t| t.shifted(base)));
            if !self.unifier.all_assignable(types.iter().zip(&wanted)) {
                continue;
            }
            self.candidates[id as usize].push(variant);
            let result = self.unifier.resolve(&variant.result.shifted(base));
            match &mut found {
                None => found = Some((variant.function, result)),
                Some((_, first)) if !first.is_dyn() && *first != result => *first = Type::Dyn,
                Some(_) => {}
            }
        }
        found
    }

    fn no_overload(
        &mut self,
        id: NodeId,
        name: &str,
        types: &[Type],
        receiver: bool,
        operands: &[NodeId],
    ) -> Type {
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
        let hint = hints::no_overload(self.source, self.ast, name, &types, operands);
        self.report(error.with_hint(hint))
    }

    fn logical(&mut self, terms: &[NodeId]) -> Type {
        let types = self.check_all(terms);
        let mut fine = true;
        for (term, t) in terms.iter().zip(&types) {
            fine &= self.expect_bool(*term, t);
        }
        if fine { Type::Bool } else { Type::Error }
    }

    fn expect_bool(&mut self, id: NodeId, t: &Type) -> bool {
        let fits = self.unifier.assignable(t, &Type::Bool);
        if !fits {
            let error = self.mismatch(id, &Type::Bool, t);
            self.report(error);
        }
        fits
    }

    /// The common type of the elements of a literal so far. That they have one is asked later, of
    /// whole literals.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if !self.unifier.assignable(&previous, &current) {
            return Type::Dyn;
        }
        if self.unifier.less_specific(&previous, &current) { previous } else { current }
    }

    fn element(&mut self, id: NodeId, optional: bool) -> Type {
        let t = self.check(id);
        match (optional, &t) {
            (false, _) | (true, Type::Dyn | Type::Any) => t,
            (true, Type::Optional(inner)) => (**inner).clone(),
            (true, _) => {
                let error = self.mismatch(id, &Type::optional(t.clone()), &t);
                self.report(error);
                t
            }
        }
    }

    fn list(&mut self, elements: &[Element]) -> Type {
        let mut common = None;
        for element in elements {
            let t = self.element(element.value, element.optional);
            common = Some(self.join(common, t));
        }
        Type::list(common.unwrap_or_else(|| self.unifier.fresh()))
    }

    fn map(&mut self, entries: &[Entry]) -> Type {
        let (mut key, mut value) = (None, None);
        for entry in entries {
            let t = self.check(entry.key);
            key = Some(self.join(key, t));
            let t = self.element(entry.value, entry.optional);
            value = Some(self.join(value, t));
        }
        let key = key.unwrap_or_else(|| self.unifier.fresh());
        let value = value.unwrap_or_else(|| self.unifier.fresh());
        Type::map(key, value)
    }

    /// Types of the one or two variables of a fold over the range.
    fn variables(&mut self, range: NodeId, two: bool) -> (Type, Type) {
        let t = self.check(range);
        let t = self.unifier.resolve(&t);
        match &t {
            Type::List(inner) if two => (Type::Int, (**inner).clone()),
            Type::List(inner) => ((**inner).clone(), Type::Dyn),
            Type::Map(pair) => (pair.0.clone(), pair.1.clone()),
            Type::Dyn | Type::Error => (Type::Dyn, Type::Dyn),
            Type::Var(_) => {
                self.unifier.assignable(&Type::Dyn, &t);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{t}' cannot be range of a comprehension (must be list, \
                     map, or dynamic)"
                );
                let error = self.error(CompileErrorKind::WrongType, range, message);
                self.report(error.with_hint(hints::no_range(&t)));
                (Type::Error, Type::Error)
            }
        }
    }

    fn fold(&mut self, id: NodeId, fold: &'a Fold) -> Type {
        let (first, second) = self.variables(fold.range, fold.var2.is_some());
        let mut variables = vec![(fold.var.as_str(), first.clone())];
        if let Some(var2) = &fold.var2 {
            variables.push((var2, second));
        }
        if let Some(filter) = fold.filter {
            let t = self.scoped(&variables, filter);
            self.condition(id, &t);
        }
        let body = self.scoped(&variables, fold.body);
        match fold.kind {
            FoldKind::All | FoldKind::Exists => {
                self.expect_bool(fold.body, &body);
                Type::Bool
            }
            FoldKind::ExistsOne => {
                self.condition(id, &body);
                Type::Bool
            }
            FoldKind::Filter => {
                self.condition(id, &body);
                Type::list(first)
            }
            FoldKind::Map => Type::list(body),
            FoldKind::MapValues => Type::map(first, body),
            FoldKind::MapEntries => {
                let made = Type::map(self.unifier.fresh(), self.unifier.fresh());
                if self.unifier.assignable(&body, &made) {
                    return self.unifier.resolve(&made);
                }
                let accumulated = Type::map(Type::Dyn, Type::Dyn);
                self.no_overload(id, "cel.@mapInsert", &[accumulated, body], false, &[])
            }
        }
    }

    /// The predicate of a macro that expands to a conditional.
    fn condition(&mut self, id: NodeId, t: &Type) {
        if self.unifier.assignable(t, &Type::Bool) {
            return;
        }
        let t = settle(&self.unifier.resolve(t));
        let message =
            format!("found no matching overload for '_?_:_' applied to '({t}, dyn, dyn)'");
        let error = self.error(CompileErrorKind::NoSuchOverload, id, message);
        let hint = "The condition of this macro must be a bool".to_owned();
        self.report(error.with_hint(Some(hint)));
    }

    fn opt_map(
        &mut self,
        id: NodeId,
        target: NodeId,
        var: &'a str,
        body: NodeId,
        flat: bool,
    ) -> Type {
        let t = self.check(target);
        let mut inner = self.unifier.fresh();
        if !self.unifier.assignable(&t, &Type::optional(inner.clone())) {
            inner = self.no_overload(id, "hasValue", &[t], true, &[target]);
        }
        let inner = self.unifier.resolve(&inner);
        let result = self.scoped(&[(var, inner)], body);
        if !flat {
            return Type::optional(result);
        }
        // The branches of a conditional have one type, of which the first may be more general.
        let (wanted, common) = (Type::optional(self.unifier.fresh()), self.unifier.fresh());
        if self.unifier.all_assignable([(&result, &common), (&wanted, &common)]) {
            return self.unifier.resolve(&common);
        }
        self.no_overload(id, "_?_:_", &[Type::Bool, result, wanted], false, &[])
    }

    /// Kubernetes wants all elements of a literal to have one type, `dyn` counting as one; the
    /// arguments of `format` are free.
    fn homogeneous(&mut self) {
        let exempt = format::arguments(self.ast);
        let t = |id: NodeId, optional: bool| match &self.types[id as usize] {
            Type::Optional(inner) if optional => (**inner).clone(),
            other => other.clone(),
        };
        let mut faults = Vec::new();
        for (node, exempt) in self.ast.nodes.iter().zip(&exempt) {
            let mut compare = |all: Vec<(NodeId, bool)>| {
                let Some((first, optional)) = all.first().copied() else { return true };
                let expected = t(first, optional);
                let other = all.iter().find(|(id, optional)| expected != t(*id, *optional));
                faults.extend(other.map(|(id, optional)| (*id, expected, t(*id, *optional))));
                other.is_none()
            };
            match &node.kind {
                _ if *exempt => {}
                Kind::List(elements) => {
                    compare(elements.iter().map(|e| (e.value, e.optional)).collect());
                }
                Kind::Map(entries) => {
                    compare(entries.iter().map(|e| (e.key, false)).collect());
                    compare(entries.iter().map(|e| (e.value, e.optional)).collect());
                }
                _ => {}
            }
        }
        for (id, expected, found) in faults {
            let error = self.mismatch(id, &expected, &found);
            self.report(error);
        }
    }

    /// Constants that are computed when compiling wherever they stand.
    fn literals(&mut self) {
        let ast = self.ast;
        for node in &ast.nodes {
            let Kind::Call { function, args, .. } = &node.kind else { continue };
            let Some(argument) = args.first() else { continue };
            let valid = match (function.as_str(), &ast.node(*argument).kind) {
                ("duration", Kind::Str(text)) => time::duration(text).is_some(),
                ("timestamp", Kind::Str(text)) => Timestamp::parse(text).is_ok(),
                ("timestamp", Kind::Int(seconds)) => Timestamp::from_seconds(*seconds).is_ok(),
                ("matches", Kind::Str(pattern)) => regex::compile(pattern).is_ok(),
                _ => true,
            };
            if !valid {
                self.bad_argument(*argument, format!("invalid {function} argument"));
            }
        }
    }

    /// Notes a fault of a call's argument.
    pub(crate) fn bad_argument(&mut self, id: NodeId, message: String) {
        let error = self.error(CompileErrorKind::BadConstant, id, message);
        self.report(error);
    }

    /// The tree that is checked.
    pub(crate) fn ast(&self) -> &'a Ast {
        self.ast
    }

    /// The type that was found for a node.
    pub(crate) fn type_of(&self, id: NodeId) -> &Type {
        &self.types[id as usize]
    }
}

/// Names of types that stand for themselves.
const TYPES: [&str; 11] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];

/// What the names of types begin with that have dots.
const NAMESPACES: [&str; 3] = ["google", "kubernetes", "net"];

/// Those that have dots.
const DOTTED_TYPES: [&str; 5] = [
    "google.protobuf.Duration",
    "google.protobuf.Empty",
    "google.protobuf.Timestamp",
    "net.CIDR",
    "net.IP",
];

/// Those that are known when checking, and no longer when evaluating.
const NAMES_ONLY: [&str; 14] = [
    "google.protobuf.Any",
    "google.protobuf.BoolValue",
    "google.protobuf.BytesValue",
    "google.protobuf.DoubleValue",
    "google.protobuf.FloatValue",
    "google.protobuf.Int32Value",
    "google.protobuf.Int64Value",
    "google.protobuf.ListValue",
    "google.protobuf.StringValue",
    "google.protobuf.Struct",
    "google.protobuf.UInt32Value",
    "google.protobuf.UInt64Value",
    "google.protobuf.Value",
    "kubernetes.DRADevice",
];

/// The type of a name.
fn named(name: &str) -> Type {
    match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "int" => Type::Int,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "optional_type" => Type::optional(Type::Dyn),
        "string" => Type::Str,
        "uint" => Type::Uint,
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "net.CIDR" => Type::Cidr,
        "net.IP" => Type::Ip,
        "kubernetes.DRADevice" => Type::Device,
        // That of types, and of messages, which have no values here.
        _ => Type::Dyn,
    }
}

/// Whether a type has a value.
pub(crate) fn is_only_a_name(name: &str) -> bool {
    NAMES_ONLY.contains(&name)
}

/// A binary operator's name in Kubernetes' error texts.
pub(crate) fn binary_name(operator: Binary) -> &'static str {
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
