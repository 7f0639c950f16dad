//! The syntax tree: an arena of nodes, each with its place in the text.
//!
//! Macros stay what they are (a fold, a binding) instead of being expanded into loops over
//! accumulators: explanations can then name them, and their cost is charged as if expanded.
//! `&&` and `||` chains are one node each, so that a conjunct can be pointed at.

/// Index of a node in its tree.
pub(crate) type NodeId = u32;

/// A parsed expression. Nodes come after their children, the root last.
#[derive(Debug)]
pub(crate) struct Ast {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: NodeId,
}

impl Ast {
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }
}

/// One node: what it is, and where it stands, in bytes.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Where Kubernetes' compiler points when it complains about this node: the operator, the
    /// dot, the bracket or the parenthesis.
    pub(crate) at: u32,
    /// Levels below and including this node.
    pub(crate) depth: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Arithmetic(Arithmetic),
    Compare(Comparison),
    Equal,
    NotEqual,
    In,
}

/// What a fold makes of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    /// `map`, `transformList`.
    Map,
    /// `filter`.
    Filter,
    /// `transformMap`.
    MapValues,
    /// `transformMapEntry`.
    MapEntries,
}

#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) kind: FoldKind,
    pub(crate) range: NodeId,
    pub(crate) var: String,
    /// The second variable of a two-variable macro: then the first is index or key.
    pub(crate) var2: Option<String>,
    /// The filter of `map(x, filter, body)`.
    pub(crate) filter: Option<NodeId>,
    pub(crate) body: NodeId,
}

#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) value: NodeId,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: NodeId,
    pub(crate) value: NodeId,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Str(String),
    Bytes(Vec<u8>),
    Ident(String),
    Select { operand: NodeId, field: String, optional: bool },
    Has { operand: NodeId, field: String },
    Index { operand: NodeId, index: NodeId, optional: bool },
    Call { target: Option<NodeId>, function: String, args: Vec<NodeId> },
    Not(NodeId),
    Negate(NodeId),
    Binary(Binary, NodeId, NodeId),
    And(Vec<NodeId>),
    Or(Vec<NodeId>),
    Conditional { condition: NodeId, then: NodeId, other: NodeId },
    List(Vec<Element>),
    Map(Vec<Entry>),
    Fold(Fold),
    Bind { var: String, init: NodeId, body: NodeId },
    OptMap { target: NodeId, var: String, body: NodeId, flat: bool },
}

impl Kind {
    /// Calls `visit` with every child, in the order of the text.
    pub(crate) fn children(&self, visit: &mut impl FnMut(NodeId)) {
        match self {
            Kind::Null
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Uint(_)
            | Kind::Double(_)
            | Kind::Str(_)
            | Kind::Bytes(_)
            | Kind::Ident(_) => {}
            Kind::Select { operand, .. } | Kind::Has { operand, .. } => visit(*operand),
            Kind::Not(operand) | Kind::Negate(operand) => visit(*operand),
            Kind::Index { operand, index, .. } => {
                visit(*operand);
                visit(*index);
            }
            Kind::Call { target, args, .. } => {
                target.iter().copied().for_each(&mut *visit);
                args.iter().copied().for_each(visit);
            }
            Kind::Binary(_, left, right) => {
                visit(*left);
                visit(*right);
            }
            Kind::And(terms) | Kind::Or(terms) => terms.iter().copied().for_each(visit),
            Kind::Conditional { condition, then, other } => {
                visit(*condition);
                visit(*then);
                visit(*other);
            }
            Kind::List(elements) => elements.iter().for_each(|e| visit(e.value)),
            Kind::Map(entries) => entries.iter().for_each(|e| {
                visit(e.key);
                visit(e.value);
            }),
            Kind::Fold(fold) => {
                visit(fold.range);
                fold.filter.iter().copied().for_each(&mut *visit);
                visit(fold.body);
            }
            Kind::Bind { init, body, .. } => {
                visit(*init);
                visit(*body);
            }
            Kind::OptMap { target, body, .. } => {
                visit(*target);
                visit(*body);
            }
        }
    }
}

/// The name at the root of `a.b.c`, if that is what a node is.
pub(crate) fn root(nodes: &[Node], id: NodeId) -> Option<&str> {
    let mut at = id;
    loop {
        match &nodes[at as usize].kind {
            Kind::Ident(name) => return Some(name),
            Kind::Select { operand, optional: false, .. } => at = *operand,
            _ => return None,
        }
    }
}

/// `a.b.c` as it is written, if that is what a node is.
pub(crate) fn dotted(nodes: &[Node], id: NodeId) -> Option<String> {
    let (mut parts, mut at) = (Vec::new(), id);
    loop {
        match &nodes[at as usize].kind {
            Kind::Ident(name) => {
                parts.push(name.as_str());
                parts.reverse();
                return Some(parts.join("."));
            }
            Kind::Select { operand, field, optional: false } => {
                parts.push(field);
                at = *operand;
            }
            _ => return None,
        }
    }
}
