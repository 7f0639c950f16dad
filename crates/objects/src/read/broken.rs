//! Why a text is not valid YAML or JSON, in our words: the parsers have their own, which speak of how they
//! work.

/// Words of the parser's message, and what it means for who wrote the text. The first that is met counts.
const MEANINGS: [(&str, &str); 42] = [
    ("tab", "a tab stands where only spaces may; indent with spaces"),
    ("unclosed quote", "a quote opens and is not closed"),
    ("document indicator", "a quote opens and is not closed before the next document"),
    ("trailing content after", "something follows a text in quotes; put all of it in quotes"),
    ("escape", "a backslash begins no escape that YAML knows; put the text in single quotes"),
    ("surrogate", "an escape for a character is half of a pair"),
    ("mapping values are not allowed", COLON),
    ("placement of ':'", COLON),
    ("':' may not precede", COLON),
    ("simple key", "a colon is missing behind a key, or the indentation is wrong before it"),
    ("did not find expected key", KEY),
    ("mapping keys are not allowed", KEY),
    ("block sequence entries are not allowed", ITEM),
    ("only valid inside a block", ITEM),
    ("cannot start with '-'", ITEM),
    ("did not find expected '-'", ITEM),
    ("block sequence", ITEM),
    ("EOF while parsing", "the document ends before it is whole"),
    ("unexpected eof", "the document ends before it is whole"),
    ("',' or '}'", "a comma or the closing brace is missing before this"),
    ("',' or ']'", "a comma or the closing bracket is missing before this"),
    ("bracket", "a bracket or a brace opens or closes without its other half"),
    ("flow construct", "what stands in brackets or braces is indented less than what it is in"),
    ("indent", "the indentation does not fit what stands before; indent with the same spaces"),
    (
        "block scalar",
        "a text that begins with | or > is not written as one; look at its first line",
    ),
    ("intercepting", "a comment stands in the middle of a text of several lines"),
    ("comment", "a comment needs a space before its #"),
    ("whitespace", "a space is missing behind - or :"),
    ("plain scalar", "a text ends where it may not; put it in quotes"),
    ("multiple", MORE),
    ("document start", MORE),
    ("document end marker", MORE),
    ("directive", "a line that begins with % is not one that YAML knows"),
    ("version", "a line that begins with % is not one that YAML knows"),
    ("anchor count", "there are too many anchors (&name) in it"),
    ("unknown anchor", "an alias (*name) stands before its anchor (&name), or has none"),
    ("anchor or alias", "a name is missing behind & or *; put a text that begins so in quotes"),
    ("tag", "what begins with ! is no tag that YAML knows; put a text that begins so in quotes"),
    ("handle", "what begins with ! is no tag that YAML knows; put a text that begins so in quotes"),
    ("node content", "a value is missing here"),
    ("BOM", "a byte order mark stands in the middle of it"),
    ("merge", "what << takes over is no map"),
];

const COLON: &str = "a colon stands where no key ends; put a text that has a colon and a space in quotes, \
                     or look at the indentation before it";
const KEY: &str = "a key is expected here; look at the indentation before it";
const ITEM: &str = "an item of a list (-) can't stand here; look at the indentation before it";
const MORE: &str = "another document begins here; it needs a line with --- before it";

/// The same of JSON.
const OF_JSON: [(&str, &str); 9] = [
    (
        "control character",
        "a control character stands in a string; write it as an escape (\\u0001)",
    ),
    ("surrogate", "an escape for a character is half of a pair"),
    ("hex escape", "an escape for a character (\\u0000) is not whole"),
    ("unicode code point", "a string has bytes or an escape that are no character of UTF-8"),
    ("escape", "a backslash begins no escape that JSON knows"),
    ("number", "a number is written as JSON does not write one, or too large"),
    ("EOF", "the object ends before it is whole"),
    ("recursion", "values are nested more than 128 deep"),
    ("trailing", "something stands behind the last value that does not belong there"),
];

/// The JSON parser's message as a sentence.
pub(super) fn of_json(message: &str) -> String {
    match OF_JSON.iter().find(|(words, _)| message.contains(words)) {
        Some((_, meaning)) => format!("This is not valid JSON: {meaning}."),
        None => "This is not valid JSON from here on.".to_owned(),
    }
}

/// The YAML parser's message as a sentence.
pub(super) fn of_yaml(message: &str) -> String {
    // The character itself is worth more than what is said of it.
    if let Some((_, character)) = message.split_once("unexpected character: `") {
        let character = character.trim_end_matches(['\'', '.']);
        return format!("This is not valid YAML: the character {character} can't stand here.");
    }
    let known = MEANINGS.iter().find(|(words, _)| message.contains(words));
    match known {
        Some((_, meaning)) => format!("This is not valid YAML: {meaning}."),
        None => "This is not valid YAML from here on; look at the indentation, the quotes and the \
                 brackets before it."
            .to_owned(),
    }
}
