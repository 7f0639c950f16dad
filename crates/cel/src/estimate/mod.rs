//! What an expression can cost at most, found without a device: an API server refuses to store one
//! that could pass [`COST_LIMIT`](crate::COST_LIMIT).
//!
//! It follows cel-go's checker, quirks included, for the number itself is what users are refused
//! by: sizes of texts and lists are estimated from literals, from what the fields of `device` can
//! hold, and from the functions that make them; what is not known has no bound. How many elements
//! a macro goes over multiplies the cost of its body.

mod calls;
mod size;

use crate::ast::{Ast, Entry, Fold, FoldKind, Kind, NodeId};
use crate::check::{Checked, Meaning, binary_name};
use crate::cost::{LIST, MAP};
use crate::types::Type;
use size::{Device, Path, Paths, Size};

/// Sizes of the keys and of the values in a list or a map.
#[derive(Clone, Copy, Debug)]
struct Inner {
    map: bool,
    key: Size,
    value: Size,
}

impl Inner {
    fn union(self, other: Inner) -> Inner {
        Inner {
            map: self.map,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

/// A variable of a macro.
#[derive(Debug)]
struct Local<'a> {
    name: &'a str,
    path: Path,
    size: Option<Size>,
    inner: Option<Inner>,
}

/// What is known of an argument where it is used.
#[derive(Clone, Debug)]
struct Argument<'a> {
    path: Path,
    t: &'a Type,
    node: Option<&'a Kind>,
    id: Option<NodeId>,
    size: Option<Size>,
}

struct Estimator<'a> {
    ast: &'a Ast,
    checked: &'a Checked,
    device: Device,
    paths: Paths,
    /// By node: where in the device its value stands.
    places: Vec<Path>,
    sizes: Vec<Option<Size>>,
    inners: Vec<Option<Inner>>,
    locals: Vec<Local<'a>>,
}

/// The most that the expression can cost; `u64::MAX` where there is no bound.
pub(crate) fn estimate(ast: &Ast, checked: &Checked) -> u64 {
    let count = ast.nodes.len();
    let mut estimator = Estimator {
        ast,
        checked,
        device: Device::default(),
        paths: Paths::default(),
        places: vec![Path::NOWHERE; count],
        sizes: vec![None; count],
        inners: vec![None; count],
        locals: Vec::new(),
    };
    estimator.cost(ast.root)
}

impl<'a> Estimator<'a> {
    fn kind(&self, id: NodeId) -> &'a Kind {
        &self.ast.node(id).kind
    }

    fn t(&self, id: NodeId) -> &'a Type {
        &self.checked.types[id as usize]
    }

    fn local(&self, name: &str) -> Option<&Local<'a>> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    /// Where the value of a node stands in the device.
    fn place(&self, id: NodeId) -> Path {
        match self.kind(id) {
            Kind::Ident(name) => self.local(name).map_or(self.places[id as usize], |l| l.path),
            _ => self.places[id as usize],
        }
    }

    fn extend(&mut self, id: NodeId, path: Path, part: &str) {
        self.places[id as usize] = self.paths.append(path, part);
    }

    fn size(&mut self, id: NodeId) -> Option<Size> {
        if let Some(size) = self.sizes[id as usize] {
            return Some(size);
        }
        let written = match self.kind(id) {
            Kind::Str(text) => Some(text.chars().count() as u64),
            Kind::Bytes(bytes) => Some(bytes.len() as u64),
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Uint(_) | Kind::Double(_) => Some(1),
            Kind::List(elements) => Some(elements.len() as u64),
            Kind::Map(entries) => Some(entries.len() as u64),
            _ => None,
        };
        if let Some(written) = written {
            return Some(Size::exactly(written));
        }
        if let Some(size) = self.device.size(&self.paths, self.place(id)) {
            self.sizes[id as usize] = Some(size);
            return Some(size);
        }
        let local = match self.kind(id) {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        };
        size::of_type(self.t(id)).or(local)
    }

    fn size_or_unknown(&mut self, id: NodeId) -> Size {
        self.size(id).unwrap_or(Size::UNKNOWN)
    }

    fn inner(&self, id: NodeId) -> Option<Inner> {
        let local = || match self.kind(id) {
            Kind::Ident(name) => self.local(name).and_then(|local| local.inner),
            _ => None,
        };
        self.inners[id as usize].or_else(local)
    }

    /// A node with the sizes of another.
    fn copy(&mut self, to: NodeId, from: NodeId) {
        let (size, inner) = (self.size(from), self.inner(from));
        self.sizes[to as usize] = size.or(self.sizes[to as usize]);
        self.inners[to as usize] = inner.or(self.inners[to as usize]);
    }

    /// The most that a node and those below it cost.
    fn cost(&mut self, id: NodeId) -> u64 {
        match self.kind(id) {
            Kind::Null
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Uint(_)
            | Kind::Double(_)
            | Kind::Str(_)
            | Kind::Bytes(_) => 0,
            Kind::Ident(name) => self.ident(id, name),
            Kind::Select { .. } if self.names_type(id) => 1,
            Kind::Select { operand, field, optional: false } => {
                let cost = self.cost(*operand);
                let path = self.place(*operand);
                self.extend(id, path, field);
                cost.saturating_add(u64::from(matches!(
                    self.t(*operand),
                    Type::Map(_) | Type::Device
                )))
            }
            Kind::Select { operand, optional: true, .. } => {
                let cost = self.cost(*operand);
                self.sizes[id as usize] = self.size(id);
                cost.saturating_add(1)
            }
            Kind::Has { operand, .. } => self.cost(*operand),
            Kind::Index { operand, index, optional } => {
                let name = if *optional { "_[?_]" } else { "_[_]" };
                self.call(id, name, None, &[*operand, *index])
            }
            Kind::Not(operand) => self.call(id, "!_", None, &[*operand]),
            Kind::Negate(operand) => self.call(id, "-_", None, &[*operand]),
            Kind::Binary(operator, left, right) => {
                self.call(id, binary_name(*operator), None, &[*left, *right])
            }
            Kind::And(terms) | Kind::Or(terms) => {
                terms.iter().fold(0, |sum: u64, term| sum.saturating_add(self.cost(*term)))
            }
            Kind::Conditional { condition, then, other } => {
                self.call(id, "_?_:_", None, &[*condition, *then, *other])
            }
            Kind::Call { target, function, args } => {
                let receiver = match self.checked.meanings[id as usize] {
                    Meaning::Call(_, receiver) => receiver,
                    Meaning::None | Meaning::Device | Meaning::Local(_) | Meaning::Type(_) => false,
                };
                self.call(id, function, target.filter(|_| receiver), args)
            }
            Kind::List(elements) => {
                let elements: Vec<NodeId> = elements.iter().map(|e| e.value).collect();
                self.list(id, &elements)
            }
            Kind::Map(entries) => self.map(id, entries),
            Kind::Fold(fold) => self.fold(id, fold),
            Kind::Bind { var, init, body } => self.bind(id, var, *init, *body),
            Kind::OptMap { target, var, body, flat } => {
                self.opt_map(id, *target, var, *body, *flat)
            }
        }
    }

    fn ident(&mut self, id: NodeId, name: &str) -> u64 {
        let path = match self.local(name) {
            Some(local) => local.path,
            None => self.paths.start(name.strip_prefix('.').unwrap_or(name)),
        };
        self.places[id as usize] = path;
        1
    }

    /// The range that upstream gives a binding costs a list.
    fn bind(&mut self, id: NodeId, var: &'a str, init: NodeId, body: NodeId) -> u64 {
        let cost = self.cost(init).saturating_add(LIST);
        let (path, size, inner) = (self.place(init), self.size(init), self.inner(init));
        let cost = cost.saturating_add(self.bound(var, path, size, inner, body));
        self.copy(id, body);
        cost
    }

    fn names_type(&mut self, id: NodeId) -> bool {
        let names = matches!(self.checked.meanings[id as usize], Meaning::Type(_));
        if names {
            self.places[id as usize] = self.paths.start("a type");
        }
        names
    }

    /// The cost of what a variable is bound in.
    fn bound(
        &mut self,
        name: &'a str,
        path: Path,
        size: Option<Size>,
        inner: Option<Inner>,
        body: NodeId,
    ) -> u64 {
        self.locals.push(Local { name, path, size, inner });
        let cost = self.cost(body);
        self.locals.pop();
        cost
    }

    fn list(&mut self, id: NodeId, elements: &[NodeId]) -> u64 {
        let mut cost = LIST;
        let mut value = if elements.is_empty() { Size::exactly(0) } else { Size::NONE };
        for element in elements {
            cost = cost.saturating_add(self.cost(*element));
            value = value.union(self.size_or_unknown(*element));
        }
        self.inners[id as usize] = Some(Inner { map: false, key: Size::exactly(1), value });
        cost
    }

    fn map(&mut self, id: NodeId, entries: &[Entry]) -> u64 {
        let mut cost = MAP;
        let none = if entries.is_empty() { Size::exactly(0) } else { Size::NONE };
        let (mut key, mut value) = (none, none);
        for entry in entries {
            cost = cost.saturating_add(self.cost(entry.key));
            cost = cost.saturating_add(self.cost(entry.value));
            key = key.union(self.size_or_unknown(entry.key));
            value = value.union(self.size_or_unknown(entry.value));
        }
        self.inners[id as usize] = Some(Inner { map: true, key, value });
        cost
    }

    /// Declares the variables of a fold over what was costed already; gives their number.
    fn enter(&mut self, fold: &'a Fold) -> usize {
        let (range, path) = (self.inner(fold.range), self.place(fold.range));
        let list = match range {
            Some(inner) => !inner.map,
            None => matches!(self.t(fold.range), Type::List(_)),
        };
        let (keys, values) = if list { ("@indices", "@items") } else { ("@keys", "@values") };
        let (key, value) = (range.map(|inner| inner.key), range.map(|inner| inner.value));
        let mut declare = |name: &'a str, part: &str, size| {
            let path = self.paths.append(path, part);
            self.locals.push(Local { name, path, size, inner: None });
        };
        match &fold.var2 {
            Some(var2) => {
                declare(&fold.var, keys, key);
                declare(var2, values, value);
                2
            }
            None if list => {
                declare(&fold.var, values, value);
                1
            }
            None => {
                declare(&fold.var, keys, key);
                1
            }
        }
    }

    /// The size of a fold's first variable in its body.
    fn variable(&self, fold: &Fold) -> Size {
        let known = self.local(&fold.var).and_then(|local| {
            let size = self.device.size(&self.paths, local.path);
            let t = match (self.t(fold.range), &fold.var2) {
                (Type::List(_), Some(_)) => &Type::Int,
                (Type::List(element), None) => element,
                (Type::Map(pair), _) => &pair.0,
                _ => &Type::Dyn,
            };
            size.or_else(|| size::of_type(t)).or(local.size)
        });
        known.unwrap_or(Size::UNKNOWN)
    }

    /// A macro costs as what it stands for: an accumulator, what is asked of it before each turn,
    /// what each turn does to it, and the result.
    fn fold(&mut self, id: NodeId, fold: &'a Fold) -> u64 {
        let range = self.cost(fold.range);
        let variables = self.enter(fold);
        let filter = fold.filter.map_or(0, |filter| self.cost(filter));
        let body = self.cost(fold.body);
        let made = match fold.kind {
            FoldKind::Filter => Some(self.variable(fold)),
            FoldKind::Map => Some(self.size_or_unknown(fold.body)),
            FoldKind::All
            | FoldKind::Exists
            | FoldKind::ExistsOne
            | FoldKind::MapValues
            | FoldKind::MapEntries => None,
        };
        self.locals.truncate(self.locals.len() - variables);
        // Before the first turn; before and in each turn; at the end.
        let (first, turn, last) = match fold.kind {
            FoldKind::All => (0, 3, 1),
            FoldKind::Exists => (0, 4, 1),
            FoldKind::ExistsOne => (0, 2, 2),
            FoldKind::Map => (LIST, 2 + LIST, 1),
            FoldKind::Filter => (LIST, 3 + LIST, 1),
            FoldKind::MapValues => (MAP, 3, 1),
            FoldKind::MapEntries => (MAP, 2, 1),
        };
        let turns = self.size_or_unknown(fold.range);
        let turn = body.saturating_add(filter).saturating_add(turn);
        let size = if first == 0 { Size::exactly(1) } else { turns };
        self.sizes[id as usize] = Some(size);
        if let Some(made) = made {
            let value = Size::exactly(0).union(made);
            self.inners[id as usize] = Some(Inner { map: false, key: Size::exactly(1), value });
        }
        range
            .saturating_add(first)
            .saturating_add(turns.max.saturating_mul(turn))
            .saturating_add(last)
    }

    /// `hasValue()` of the target, and one of: the body with its `value()` bound, nothing.
    fn opt_map(
        &mut self,
        id: NodeId,
        target: NodeId,
        var: &'a str,
        body: NodeId,
        flat: bool,
    ) -> u64 {
        let target_cost = self.cost(target).saturating_add(1);
        let value = match self.t(target) {
            Type::Optional(inner) => size::of_type(inner),
            _ => None,
        };
        let inside = self.bound(var, Path::NOWHERE, value, None, body);
        let then = target_cost.saturating_add(LIST).saturating_add(inside);
        let then = then.saturating_add(u64::from(!flat));
        let nothing = size::of_type(self.t(id)).unwrap_or(Size::UNKNOWN);
        let made = if flat { self.size_or_unknown(body) } else { nothing };
        self.sizes[id as usize] = Some(made.union(nothing));
        target_cost.saturating_add(then.max(1))
    }
}
