//! What to write instead: one sentence for the mistakes that people make with selectors.

use crate::ast::{Ast, Kind, NodeId};
use crate::types::Type;

/// A selector is evaluated for each device by itself; relations belong to the request.
const ONE_DEVICE: &str = "A selector sees one device; to relate devices use matchAttribute in the \
                          request's constraints";

const FIELDS: [&str; 4] = ["driver", "attributes", "capacity", "allowMultipleAllocations"];

/// For what is no token of the language.
pub(crate) fn unread(token: &str) -> Option<String> {
    let instead = match token {
        "=" => "To compare, write ==",
        "&" => "Both of two conditions are written with &&",
        "|" => "One of two conditions is written with ||",
        _ => return None,
    };
    Some(instead.to_owned())
}

/// For a name that is no variable.
pub(crate) fn undeclared_name(ast: &Ast, id: NodeId, name: &str) -> String {
    let used_as_device = ast.nodes.iter().any(|node| match &node.kind {
        Kind::Select { operand, field, .. } | Kind::Has { operand, field } => {
            *operand == id && FIELDS.contains(&field.as_str())
        }
        Kind::Index { operand, .. } => *operand == id,
        _ => false,
    });
    let lower = name.to_ascii_lowercase();
    let words = ["device", "other", "peer", "neighbor", "neighbour"];
    if used_as_device || words.iter().any(|word| lower.contains(word)) {
        return ONE_DEVICE.to_owned();
    }
    "The only variable is `device`, with the fields driver, attributes, capacity and \
     allowMultipleAllocations; write texts in quotes"
        .to_owned()
}

/// For a field that `device` has not.
pub(crate) fn undefined_field(field: &str) -> String {
    let quoted = format!("device.attributes[\"DOMAIN\"].{field}");
    match field {
        "name" | "pool" | "node" | "nodeName" | "taints" => format!(
            "A selector sees driver, attributes, capacity and allowMultipleAllocations of the \
             device, not its {field}"
        ),
        "attribute" => "The field is called attributes".to_owned(),
        "capacities" => "The field is called capacity".to_owned(),
        _ => format!("What a driver publishes is under attributes or capacity, as in {quoted}"),
    }
}

/// For a function that does not exist.
pub(crate) fn undeclared_function(name: &str, receiver: bool) -> Option<String> {
    let hint = match name {
        "toLower" | "lower" | "toLowerCase" => "Use lowerAscii()",
        "toUpper" | "upper" | "toUpperCase" => "Use upperAscii()",
        "length" | "len" | "count" => "Use size()",
        "equals" => "Use ==",
        "match" => "Use matches()",
        "version" => "Use semver()",
        "greaterThan" => "Use isGreaterThan()",
        "lessThan" => "Use isLessThan()",
        "any" if receiver => "Use exists()",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// For values of a type without fields.
pub(crate) fn no_fields(t: &Type) -> Option<String> {
    match t {
        Type::Quantity => Some(
            "A quantity is compared with compareTo(), isGreaterThan() or isLessThan()".to_owned(),
        ),
        _ => None,
    }
}

/// For what a macro can't go over.
pub(crate) fn no_range(t: &Type) -> Option<String> {
    (*t == Type::Any).then(|| {
        "Attributes can be lists only where the feature gate DRAListTypeAttributes is on".to_owned()
    })
}

/// For a whole expression that is no bool.
pub(crate) fn not_bool(t: &Type) -> Option<String> {
    match t {
        Type::Quantity => Some(compare("the quantity", "quantity(\"40Gi\")")),
        Type::Device => Some("Compare one of its fields with something".to_owned()),
        _ => Some("Compare the value with something".to_owned()),
    }
}

/// For literals whose elements differ in type.
pub(crate) fn mixed(expected: &Type, found: &Type) -> Option<String> {
    let dynamic = *expected == Type::Dyn || *found == Type::Dyn;
    let scalar = !matches!(expected, Type::Bool) && dynamic;
    scalar.then(|| {
        "The type of an attribute is not known in advance; wrap each element in dyn() or compare \
         them one by one"
            .to_owned()
    })
}

fn compare(left: &str, right: &str) -> String {
    format!("Compare quantities with compareTo: {left}.compareTo({right}) >= 0")
}

/// For a function or operator that does not take these types.
pub(crate) fn no_overload(
    source: &str,
    ast: &Ast,
    name: &str,
    types: &[Type],
    operands: &[NodeId],
) -> Option<String> {
    let text = |at: usize| {
        let node = operands.get(at).map(|id| ast.node(*id))?;
        source.get(node.start as usize..node.end as usize)
    };
    let symbol = name.trim_matches('_');
    let relation = ["<", "<=", ">", ">=", "==", "!="].contains(&symbol);
    match types {
        [Type::Quantity, other] | [other, Type::Quantity] if relation => {
            let first = types.first() == Some(&Type::Quantity);
            let (left, right) = (text(usize::from(!first))?, text(usize::from(first))?);
            let right = match other {
                Type::Int | Type::Uint | Type::Double => format!("quantity(\"{right}\")"),
                Type::Str => format!("quantity({right})"),
                _ => right.to_owned(),
            };
            let symbol = if first { symbol } else { mirrored(symbol) };
            Some(format!("Compare quantities with compareTo: {left}.compareTo({right}) {symbol} 0"))
        }
        [Type::Semver, other] | [other, Type::Semver] if relation => {
            let first = types.first() == Some(&Type::Semver);
            let (left, right) = (text(usize::from(!first))?, text(usize::from(first))?);
            let right = match other {
                Type::Str => format!("semver({right})"),
                _ => right.to_owned(),
            };
            let symbol = if first { symbol } else { mirrored(symbol) };
            Some(format!("Compare versions with compareTo: {left}.compareTo({right}) {symbol} 0"))
        }
        [Type::Quantity, Type::Str | Type::Int] => {
            Some(format!("Write quantity(\"…\") around the argument of {name}()"))
        }
        [Type::Semver, Type::Str] => {
            Some(format!("Write semver(\"…\") around the argument of {name}()"))
        }
        [Type::Quantity] if name == "sign" => Some(format!("Write sign({})", text(0)?)),
        [Type::Device, _] if name.starts_with("_[") => Some(
            "Attributes are under device.attributes[\"DOMAIN\"], capacities under \
             device.capacity[\"DOMAIN\"]"
                .to_owned(),
        ),
        [Type::Str, Type::Int | Type::Double] if relation => Some(
            "Write the number in quotes to compare texts, or convert the text with int()"
                .to_owned(),
        ),
        _ => None,
    }
}

/// The relation with its sides exchanged.
fn mirrored(symbol: &str) -> &str {
    match symbol {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        same => same,
    }
}
