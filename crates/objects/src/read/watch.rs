//! What a watch says (`kubectl get --watch --output-watch-events`): objects that came, changed and went,
//! one after the other. Which state of an object counts in the end is left to who takes them in.

use super::tree::{Place, Step};
use super::{ListType, Node, Reader, Severity};

/// What an event says of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It exists in this state.
    Exists,
    /// It is gone; the state is its last.
    Gone,
    /// That all up to here was told.
    Bookmark,
    /// The object is no object but why the watch ended.
    Error,
}

impl Event {
    /// By the word under `type`.
    pub(super) fn find(word: &str) -> Option<Self> {
        match word {
            "ADDED" | "MODIFIED" => Some(Self::Exists),
            "DELETED" => Some(Self::Gone),
            "BOOKMARK" => Some(Self::Bookmark),
            "ERROR" => Some(Self::Error),
            _ => None,
        }
    }
}

impl Reader<'_> {
    /// Reads an event from its tree; false if it is none.
    pub(super) fn tree_event(&mut self, node: &Node) -> bool {
        let text = |key| node.get(key).and_then(Node::as_str);
        if text("kind").is_some() || text("apiVersion").is_some() {
            return false;
        }
        let event = text("type").and_then(Event::find);
        let Some((event, object)) = event.zip(node.get("object")) else { return false };
        match event {
            Event::Exists => self.tree_object(object, &ListType::default()),
            Event::Gone => {
                self.is_gone = true;
                self.tree_object(object, &ListType::default());
                self.is_gone = false;
            }
            Event::Bookmark => {}
            Event::Error => {
                let why = object.get("message").and_then(Node::as_str).map(str::to_owned);
                self.watch_error(node.place, why.as_deref());
            }
        }
        true
    }

    /// Says that a watch ended early.
    pub(super) fn watch_error(&mut self, place: Place, why: Option<&str>) {
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        let message = format!(
            "The watch ended here with an error{why}; what changed afterwards is not in the input."
        );
        let path = [Step::Key("object".into())];
        self.reported(Severity::Warning, place, &path, None, message);
    }
}
