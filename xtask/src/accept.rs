//! `cargo xtask accept`: writes what scenarios say into their files, for the reader of the
//! difference to judge. What is expected by hand is never touched.

use phalanx_sim::{Scenario, run};

use crate::run::{Done, root};
use crate::source::Tree;

/// Rewrites the `says` of every scenario whose path has `part` in it. One that does not hold
/// otherwise is left alone and named.
pub(crate) fn run_all(part: Option<&str>) -> Done {
    let root = root();
    let tree = Tree::read(&root)?;
    let (mut written, mut failed) = (0, 0);
    for file in tree.files.iter().filter(|f| f.path.starts_with("scenarios/")) {
        if part.is_some_and(|part| !file.path.contains(part)) {
            continue;
        }
        let outcome = Scenario::parse(&file.text).and_then(|scenario| run(&scenario));
        let says = match outcome {
            Ok(outcome) if outcome.wrong.is_empty() => outcome.says,
            Ok(outcome) => {
                failed += 1;
                println!("{}:\n  {}", file.path, outcome.wrong.join("\n  "));
                continue;
            }
            Err(error) => {
                failed += 1;
                println!("{}: {error}", file.path);
                continue;
            }
        };
        let text = with_says(&file.text, &says);
        if text != file.text {
            std::fs::write(root.join(&file.path), text)
                .map_err(|e| format!("{}: {e}.", file.path))?;
            println!("{}: accepted", file.path);
            written += 1;
        }
    }
    println!("── {written} accepted; read the difference before you commit it");
    if failed == 0 { Ok(()) } else { Err(format!("{failed} scenarios do not hold.")) }
}

/// The text with `says`, which is its last key, replaced.
fn with_says(text: &str, says: &str) -> String {
    let head = match text.find("\nsays:") {
        Some(at) => &text[..=at],
        None => text,
    };
    let mut text = head.to_owned();
    text.push_str("says: |\n");
    for line in says.lines() {
        text.push_str("  ");
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_is_replaced() {
        let text = with_says("rule: A.\nexpect: {}\n", "one\ntwo\n");
        assert_eq!(text, "rule: A.\nexpect: {}\nsays: |\n  one\n  two\n");
        assert_eq!(with_says(&text, "three\n"), "rule: A.\nexpect: {}\nsays: |\n  three\n");
    }
}
