//! The annotation by which a pod, claim, template or workload wishes its devices close together:
//! `phalanx.dev/align: island=required,root=preferred`.

use std::fmt;

/// The annotation's name.
pub const ALIGN_ANNOTATION: &str = "phalanx.dev/align";

/// The rules of an annotation, in the order in which they are written; no level twice.
pub type Align = Vec<AlignRule>;

/// One rule: all devices of one claim in one domain of this level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlignRule {
    /// The level.
    pub level: AlignLevel,
    /// Whether the pod rather waits.
    pub strength: Strength,
}

/// What devices can have in common, closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlignLevel {
    /// An island of NVLink or of a switch fabric.
    Island,
    /// A PCIe switch.
    Switch,
    /// A PCIe root complex.
    Root,
    /// A NUMA node.
    Numa,
    /// A network rail.
    Rail,
}

/// How much a rule weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// The pod waits until it can be kept.
    Required,
    /// It is kept where that is possible.
    Preferred,
}

/// Why the annotation cannot be read. Columns count characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlignError {
    /// A rule without `=`.
    #[error(
        "Column {column} of the annotation phalanx.dev/align: `{word}` is not LEVEL=STRENGTH; write \
         for example island=required."
    )]
    Shape {
        /// What is written.
        word: String,
        /// Where it begins.
        column: usize,
    },
    /// An unknown level.
    #[error(
        "Column {column} of the annotation phalanx.dev/align: `{word}` is not a level; the levels \
         are island, switch, root, numa and rail."
    )]
    Level {
        /// What is written.
        word: String,
        /// Where it begins.
        column: usize,
    },
    /// An unknown strength.
    #[error(
        "Column {column} of the annotation phalanx.dev/align: `{word}` is not a strength; write \
         required or preferred."
    )]
    Strength {
        /// What is written.
        word: String,
        /// Where it begins.
        column: usize,
    },
    /// A level twice.
    #[error(
        "Column {column} of the annotation phalanx.dev/align: the level {level} is named twice; \
         name it once."
    )]
    Twice {
        /// The level.
        level: AlignLevel,
        /// Where it begins the second time.
        column: usize,
    },
}

impl AlignLevel {
    /// All levels, closest first.
    pub const ALL: [Self; 5] = [Self::Island, Self::Switch, Self::Root, Self::Numa, Self::Rail];

    /// The word in the annotation.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Island => "island",
            Self::Switch => "switch",
            Self::Root => "root",
            Self::Numa => "numa",
            Self::Rail => "rail",
        }
    }
}

impl fmt::Display for AlignLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Strength {
    /// The word in the annotation.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Preferred => "preferred",
        }
    }
}

impl AlignRule {
    /// Reads the annotation's value: `LEVEL=required|preferred[,…]`, spaces around words allowed.
    ///
    /// # Errors
    /// Names the first word that is wrong, with its column and what is allowed in its place.
    pub fn parse(text: &str) -> Result<Align, AlignError> {
        let mut rules = Align::new();
        let mut start = 1;
        for part in text.split(',') {
            let rule = rule(part, start)?;
            if rules.iter().any(|earlier| earlier.level == rule.level) {
                let column = column(part, start);
                return Err(AlignError::Twice { level: rule.level, column });
            }
            rules.push(rule);
            start += part.chars().count() + 1;
        }
        Ok(rules)
    }
}

/// Reads one rule that begins in the given column.
fn rule(part: &str, start: usize) -> Result<AlignRule, AlignError> {
    let Some((left, right)) = part.split_once('=') else {
        return Err(AlignError::Shape {
            word: part.trim().to_owned(),
            column: column(part, start),
        });
    };
    let word = left.trim();
    let level = AlignLevel::ALL.into_iter().find(|level| level.as_str() == word);
    let level = level
        .ok_or_else(|| AlignError::Level { word: word.to_owned(), column: column(left, start) })?;
    let strength = match right.trim() {
        "required" => Strength::Required,
        "preferred" => Strength::Preferred,
        other => {
            let start = start + left.chars().count() + 1;
            return Err(AlignError::Strength {
                word: other.to_owned(),
                column: column(right, start),
            });
        }
    };
    Ok(AlignRule { level, strength })
}

/// The column of the first character that is no space.
fn column(text: &str, start: usize) -> usize {
    start + text.chars().take_while(|character| character.is_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_in_order() {
        let rules = AlignRule::parse("island=required, root=preferred").unwrap();
        assert_eq!(
            rules,
            [
                AlignRule { level: AlignLevel::Island, strength: Strength::Required },
                AlignRule { level: AlignLevel::Root, strength: Strength::Preferred },
            ]
        );
    }

    #[test]
    fn errors_name_the_word_the_column_and_what_is_allowed() {
        let cases = [
            ("island=required,rack=required", "Column 17", "`rack`", "island, switch, root"),
            ("island=must", "Column 8", "`must`", "required or preferred"),
            ("island", "Column 1", "`island`", "LEVEL=STRENGTH"),
            ("island=required, ", "Column 18", "``", "LEVEL=STRENGTH"),
            ("numa=required,numa=preferred", "Column 15", "numa", "twice"),
            ("", "Column 1", "``", "LEVEL=STRENGTH"),
        ];
        for (text, column, word, allowed) in cases {
            let message = AlignRule::parse(text).unwrap_err().to_string();
            for part in [column, word, allowed] {
                assert!(message.contains(part), "{text:?}: {message:?} lacks {part:?}");
            }
        }
    }
}
