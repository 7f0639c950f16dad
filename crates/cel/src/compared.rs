//! What an expression compares attributes with, as it is written: enough to tell that a comparison
//! can never be true for the types that are published. Which types are, others know.

use crate::ast::{Ast, Binary, Kind, NodeId};
use crate::error::line_and_column;
use crate::program::Program;

/// An attribute that is compared with a value that is written out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Domain of the attribute.
    pub domain: String,
    /// Its name in the domain.
    pub id: String,
    /// `==`, `!=` or `in`: those that say no, and do not fail, where the types differ.
    pub operator: &'static str,
    /// What it is compared with: `string`, `int`, `bool` or `version`, as attributes call it.
    pub kind: &'static str,
    /// The comparison, as written.
    pub text: String,
    /// The attribute's path, as written.
    pub path: String,
    /// Line of the comparison in the expression, from 1.
    pub line: usize,
    /// Column in that line, from 1, in characters.
    pub column: usize,
}

impl Program {
    /// The comparisons of attributes with values that are written out, in the order of the text.
    pub fn compared(&self) -> Vec<Compared> {
        let ast = &self.ast;
        let mut all: Vec<(u32, Compared)> = Vec::new();
        for node in &ast.nodes {
            let Kind::Binary(operator, left, right) = &node.kind else { continue };
            let operator = match operator {
                Binary::Equal => "==",
                Binary::NotEqual => "!=",
                Binary::In => "in",
                Binary::Arithmetic(_) | Binary::Compare(_) => continue,
            };
            let found = pair(ast, *left, *right)
                .or_else(|| (operator != "in").then(|| pair(ast, *right, *left)).flatten());
            let Some((attribute, (domain, id), kind)) = found else { continue };
            let text = |from: u32, to: u32| {
                self.source().get(from as usize..to as usize).unwrap_or_default().to_owned()
            };
            let attribute = ast.node(attribute);
            let (line, column) = line_and_column(self.source(), node.start as usize);
            let compared = Compared {
                domain,
                id,
                operator,
                kind,
                text: text(node.start, node.end),
                path: text(attribute.start, attribute.end),
                line,
                column,
            };
            all.push((node.start, compared));
        }
        all.sort_by_key(|(start, _)| *start);
        all.into_iter().map(|(_, compared)| compared).collect()
    }
}

type Found = (NodeId, (String, String), &'static str);

fn pair(ast: &Ast, attribute: NodeId, literal: NodeId) -> Option<Found> {
    Some((attribute, entry(ast, attribute)?, kind(ast, literal)?))
}

/// Domain and name of `device.attributes["domain"].name` in any of its forms.
fn entry(ast: &Ast, id: NodeId) -> Option<(String, String)> {
    let (domain, name) = step(ast, id)?;
    let (table, domain) = step(ast, domain)?;
    let (device, attributes) = step(ast, table)?;
    let is_device = matches!(&ast.node(device).kind, Kind::Ident(name) if name == "device");
    (is_device && attributes == "attributes").then_some((domain, name))
}

/// What a value is taken from, and under which key.
fn step(ast: &Ast, id: NodeId) -> Option<(NodeId, String)> {
    match &ast.node(id).kind {
        Kind::Select { operand, field, optional: false } => Some((*operand, field.clone())),
        Kind::Index { operand, index, optional: false } => match &ast.node(*index).kind {
            Kind::Str(key) => Some((*operand, key.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// The kind of a value that is written out; of a list, that of all its elements.
fn kind(ast: &Ast, id: NodeId) -> Option<&'static str> {
    match &ast.node(id).kind {
        Kind::Str(_) => Some("string"),
        Kind::Int(_) | Kind::Uint(_) | Kind::Double(_) => Some("int"),
        Kind::Bool(_) => Some("bool"),
        Kind::Call { function, .. } if function == "semver" => Some("version"),
        Kind::List(elements) => {
            let mut kinds = elements.iter().map(|element| kind(ast, element.value));
            let first = kinds.next()??;
            kinds.all(|kind| kind == Some(first)).then_some(first)
        }
        _ => None,
    }
}
