//! Reads the text of a file: one object, many documents, lists, JSON or YAML. Objects are handed out
//! as they are read, so a dump of any size is never held as a tree. What is wrong with one object
//! costs only that object, and is handed out as a problem with its place. Files are opened by others.

mod broken;
mod json;
mod json_scan;
mod json_tree;
mod near;
mod notice;
mod once;
mod problem;
mod shape;
#[cfg(test)]
mod tests;
mod tree;
mod validate;
mod watch;
mod yaml;

use std::cell::OnceCell;
use std::sync::Arc;

pub use notice::is_notice;
pub use problem::{Problem, Severity};

use problem::Report;

use crate::object::{Kind, Object, ObjectRef};
use shape::Shape;
use tree::{Node, Place, TreeError, path_text};

/// What a text holds, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// An object.
    Object(Object, Source),
    /// An object that is gone, in its last state, as a watch tells of it.
    Gone(Object, Source),
    /// An object of a kind or version that is not read.
    Unknown {
        /// Group and version.
        api_version: String,
        /// Kind.
        kind: String,
        /// Where it begins.
        source: Source,
    },
    /// Something that cannot be read, or that is read but looks wrong.
    Problem(Box<Problem>),
}

/// Where an object begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The file as it was named to [`read`].
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: u32,
}

/// Where a field stands, and the line with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1 (in bytes far down very long lines).
    pub column: u32,
    /// The line itself, or the part of it around the column if it is long.
    pub text: String,
    /// Where the column is in `text`, in characters counted from 1.
    pub text_column: u32,
}

/// Finds where a field stands: the value at a path, or the deepest value on the way to it.
pub type Locate<'a> = dyn Fn(&str) -> Spot + 'a;

/// Reads all of a text and hands out what it holds, in its order. `file` is only named in messages.
/// JSON and YAML are told apart by the text itself.
pub fn read(file: &str, bytes: &[u8], sink: &mut dyn FnMut(Item)) {
    read_observed(file, bytes, None, sink);
}

/// Looks at each object before it is handed out, while its fields can still be found in the text.
pub type Observe<'a> = dyn FnMut(&Object, &Source, &Locate<'_>) + 'a;

/// As [`read`]; each object is shown to `observe` first, and after it what is wrong with it is
/// handed out.
pub fn read_observed<'a>(
    file: &str,
    bytes: &'a [u8],
    observe: Option<&'a mut Observe<'a>>,
    sink: &'a mut dyn FnMut(Item),
) {
    let mut reader = Reader { report: Report::new(file, bytes), is_gone: false, observe, sink };
    if let Some(encoding) = foreign_encoding(bytes) {
        let message = format!("The file is in {encoding}; save it as UTF-8.");
        reader.problem(Place { line: 1, column: 1 }, &[], None, message);
        return;
    }
    let start = if bytes.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let behind = notice::end(bytes, start);
    if json::looks_like_json(bytes.get(behind..).unwrap_or_default()) {
        reader.notices(bytes, start, behind);
        json::read(&mut reader, bytes, behind);
    } else {
        yaml::read(&mut reader, bytes, start);
    }
}

/// The name of an encoding that is not UTF-8, told by its byte order mark.
fn foreign_encoding(bytes: &[u8]) -> Option<&'static str> {
    let marks: [(&[u8], &str); 3] =
        [(b"\xFF\xFE", "UTF-16"), (b"\xFE\xFF", "UTF-16"), (b"\x00\x00\xFE\xFF", "UTF-32")];
    marks.into_iter().find(|(mark, _)| bytes.starts_with(mark)).map(|(_, name)| name)
}

/// Hands out what the two formats find.
struct Reader<'a> {
    report: Report<'a>,
    /// Whether what is read is an object that is gone.
    is_gone: bool,
    observe: Option<&'a mut Observe<'a>>,
    sink: &'a mut dyn FnMut(Item),
}

/// What a list says of its items where they do not say it themselves.
#[derive(Clone, Debug, Default)]
struct ListType {
    api_version: Option<String>,
    /// The kind of the items.
    kind: Option<String>,
}

impl ListType {
    /// From the type of the list: `PodList` holds `Pod`, and `List` anything.
    fn new(api_version: Option<&str>, kind: Option<&str>) -> Self {
        let kind = kind.and_then(|kind| kind.strip_suffix("List")).filter(|kind| !kind.is_empty());
        Self {
            // The version of `List` is that of the list itself.
            api_version: kind.and(api_version).map(str::to_owned),
            kind: kind.map(str::to_owned),
        }
    }
}

/// Whether a kind is that of a list.
fn is_list(kind: &str) -> bool {
    kind.ends_with("List")
}

/// Whether it is the answer of the API server to a request, in place of objects.
fn is_status(api_version: Option<&str>, kind: Option<&str>) -> bool {
    kind == Some("Status") && api_version == Some("v1")
}

impl Reader<'_> {
    fn source(&self, line: u32) -> Source {
        Source { file: Arc::clone(&self.report.file), line }
    }

    fn problem(
        &mut self,
        place: Place,
        path: &[tree::Step],
        object: Option<ObjectRef>,
        message: String,
    ) {
        self.reported(Severity::Error, place, path, object, message);
    }

    fn reported(
        &mut self,
        severity: Severity,
        place: Place,
        path: &[tree::Step],
        object: Option<ObjectRef>,
        message: String,
    ) {
        let problem = self.report.problem(severity, place, path_text(path), object, message);
        (self.sink)(Item::Problem(Box::new(problem)));
    }

    /// Finds how an object is read, or hands out why it is not.
    fn shape(
        &mut self,
        api_version: Option<&str>,
        kind: Option<&str>,
        list: &ListType,
        place: Place,
    ) -> Option<Shape> {
        let api_version = api_version.or(list.api_version.as_deref()).unwrap_or_default();
        let kind = kind.or(list.kind.as_deref()).unwrap_or_default();
        let missing = match (api_version, kind) {
            (_, "") => "kind",
            ("", _) => "apiVersion",
            (_, "List") => {
                let message = "A List without items is not read; give its items.";
                self.problem(place, &[], None, message.to_owned());
                return None;
            }
            _ => {
                let shape = Shape::find(api_version, kind);
                if shape.is_none() {
                    let source = self.source(place.line);
                    let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
                    (self.sink)(Item::Unknown { api_version, kind, source });
                }
                return shape;
            }
        };
        let message = format!("The object has no `{missing}`, so it is not known what it is.");
        self.problem(place, &[tree::Step::Key(missing.into())], None, message);
        None
    }

    /// Reads an object from its tree.
    fn tree_object(&mut self, node: &Node, list: &ListType) {
        if self.tree_event(node) {
            return;
        }
        let text = |key| node.get(key).and_then(Node::as_str);
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let items = node.get("items").filter(|_| kind.is_some_and(is_list));
        if let Some(Node { value: tree::Value::Sequence(items), .. }) = items {
            // A list inside a list: as deep as trees go.
            let list = ListType::new(api_version, kind);
            items.iter().for_each(|item| self.tree_object(item, &list));
            return;
        }
        if is_status(api_version, kind) && self.refusal(node) {
            return;
        }
        let Some(shape) = self.shape(api_version, kind, list, node.place) else { return };
        match read_tree(shape, node) {
            Ok(object) => {
                if !(is_manifest(&object) && self.misspelt(&object, node)) {
                    self.object(object, node.place, || Some(node.clone()));
                }
            }
            Err(error) => self.tree_error(shape.kind(), node, &error),
        }
    }

    /// Says that the API server did not give what it was asked for, if a Status says so.
    fn refusal(&mut self, status: &Node) -> bool {
        let text = |key| status.get(key).and_then(Node::as_str).filter(|text| !text.is_empty());
        if text("status") == Some("Success") {
            return false;
        }
        let code = match status.get("code").map(|code| &code.value) {
            Some(tree::Value::Int(code)) => Some(code.to_string()),
            Some(_) | None => None,
        };
        let is_refused = match code.as_deref() {
            Some(code) => matches!(code, "401" | "403"),
            None => matches!(text("reason"), Some("Unauthorized" | "Forbidden")),
        };
        let code = code.map_or_else(String::new, |code| format!(" (code {code})"));
        let why = text("message")
            .or_else(|| text("reason"))
            .map_or_else(String::new, |why| format!(": {}", why.trim_end_matches('.')));
        let message = match is_refused {
            true => format!(
                "The API server refused what it was asked for here{code}{why}. What it would have given is \
                 missing from the input; ask for it again with the rights that it takes."
            ),
            false => format!(
                "The API server answered with an error here{code}{why}. What it was asked for is missing \
                 from the input; ask for it again."
            ),
        };
        self.problem(status.place, &[], None, message);
        true
    }

    /// Hands out which fields of a manifest are not known; whether there are any.
    fn misspelt(&mut self, object: &Object, tree: &Node) -> bool {
        let found = near::misspelt(object, tree);
        let any = !found.is_empty();
        for near in found {
            let reference = Some(object.reference());
            self.problem(near.place, &near.path, reference, near.message);
        }
        any
    }

    fn tree_error(&mut self, kind: Kind, node: &Node, error: &TreeError) {
        let field = |key| {
            let value = node.get("metadata").and_then(|metadata| metadata.get(key));
            value.and_then(Node::as_str).unwrap_or_default().to_owned()
        };
        let object = ObjectRef { kind, namespace: field("namespace"), name: field("name") };
        let place = error.place.unwrap_or(node.place);
        self.problem(place, &error.path(), Some(object), error.message.clone());
    }

    /// Checks an object and hands it out. `tree` finds its tree again where a place is needed.
    fn object(&mut self, mut object: Object, place: Place, tree: impl Fn() -> Option<Node>) {
        let source = self.source(place.line);
        if self.is_gone {
            return (self.sink)(Item::Gone(object, source));
        }
        if let Some(observe) = &mut self.observe {
            let report = &self.report;
            let found = OnceCell::new();
            let locate = |path: &str| {
                let tree = found.get_or_init(&tree).as_ref();
                report.spot(tree.map_or(place, |tree| tree.locate(&tree::parse_path(path))))
            };
            observe(&object, &source, &locate);
        }
        let issues = validate::check(&object);
        if !issues.is_empty() {
            let tree = tree();
            let usable = issues.iter().all(|issue| issue.severity == Severity::Warning);
            for issue in issues {
                let place = tree.as_ref().map_or(place, |tree| tree.locate(&issue.path));
                let reference = Some(object.reference());
                self.reported(issue.severity, place, &issue.path, reference, issue.message);
            }
            if !usable {
                return;
            }
        }
        if !object.kind().is_namespaced() {
            object.metadata_mut().namespace.clear();
        }
        (self.sink)(Item::Object(object, source));
    }
}

/// Reads an object that stands in another; none if it is of a kind that is not read.
pub(crate) fn read_value(
    api_version: &str,
    kind: &str,
    value: serde_json::Value,
) -> Option<Result<Object, String>> {
    let shape = Shape::find(api_version, kind)?;
    Some(shape.read(value).map_err(|error| error.to_string()))
}

/// Whether an object is yet to be given to the API server, and its fields are known.
fn is_manifest(object: &Object) -> bool {
    let meta = object.metadata();
    let made = !meta.uid.is_empty()
        || !meta.resource_version.is_empty()
        || meta.creation_timestamp.is_some();
    near::knows(object.kind()) && !made
}

/// Of a key that a map has twice.
const TWICE: &str = "The key occurs twice in one map; remove one of the two.";

/// Reads an object of a known shape from its tree.
fn read_tree(shape: Shape, node: &Node) -> Result<Object, TreeError> {
    if let Some((path, place)) = node.duplicate_key() {
        return Err(TreeError::placed(TWICE.to_owned(), place, path));
    }
    shape.read(node)
}
