//! Puts devices to the test: the selectors of a class and an expression of the user's. What an
//! expression means is left to the CEL crate.

use phalanx_cel::{COST_LIMIT, Device, Environment, Program, Verdict};
use phalanx_objects::resource::DeviceClass;

use super::inventory::Row;
use crate::cel::{self, Drawing};
use crate::exit::Failure;

/// The expressions that a device must pass, all of them.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    selectors: Vec<Selector>,
}

/// One of them.
#[derive(Debug)]
struct Selector {
    /// Where it stands, for messages.
    origin: String,
    program: Program,
}

/// What became of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It passes.
    Kept,
    /// It passes, and nobody is given it: what is wrong with its pool.
    Unused(String),
    /// An expression is false: the parts that made it so, with the values that they read.
    Dropped {
        /// The parts.
        parts: Vec<Part>,
    },
    /// An expression has no answer.
    Failed {
        /// Why.
        message: String,
        /// What to do about it.
        hint: Option<&'static str>,
        /// The expression with a caret, rendered for a terminal.
        picture: String,
    },
}

/// A part of an expression that is false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The part as it was written.
    pub(crate) text: String,
    /// What it read: name and value; none where the device has no such thing.
    pub(crate) values: Vec<(String, Option<String>)>,
}

impl Judge {
    /// Adds the user's expression.
    ///
    /// # Errors
    /// Says and draws what is wrong with it.
    pub(crate) fn add(
        &mut self,
        origin: &str,
        expression: &str,
        environment: &Environment,
    ) -> Result<(), Failure> {
        let program = Program::compile(expression, environment)
            .map_err(|error| cel::failure(origin, expression, &error))?;
        self.selectors.push(Selector { origin: origin.to_owned(), program });
        Ok(())
    }

    /// Adds the selectors of a class.
    ///
    /// # Errors
    /// Says and draws what is wrong with one of them.
    pub(crate) fn add_class(
        &mut self,
        class: &DeviceClass,
        environment: &Environment,
    ) -> Result<(), Failure> {
        for (index, selector) in class.spec.selectors.iter().enumerate() {
            if let Some(cel) = &selector.cel {
                let origin = format!("DeviceClass {} selectors[{index}]", class.metadata.name);
                self.add(&origin, &cel.expression, environment)?;
            }
        }
        Ok(())
    }

    /// Whether anything is asked.
    pub(crate) fn is_empty(&self) -> bool {
        self.selectors.is_empty()
    }

    /// Tests one device: the first expression that is not true decides.
    pub(crate) fn judge(&self, row: &Row) -> Judgement {
        let info = &row.info;
        let attributes = info.attributes.iter().map(|(name, value)| (name.as_str(), value));
        let capacity = info.capacity.iter().map(|(name, value)| (name.as_str(), value));
        let device = Device::from_parts(row.driver(), info.shareable, attributes, capacity);
        let device = match device {
            Ok(device) => device,
            Err(error) => {
                let message = format!("no expression can be evaluated on it: {error}");
                return Judgement::Failed { message, hint: None, picture: String::new() };
            }
        };
        for selector in &self.selectors {
            match selector.program.evaluate(&device, COST_LIMIT).verdict {
                Verdict::Yes => {}
                Verdict::No => {
                    return Judgement::Dropped { parts: parts(&selector.program, &device) };
                }
                Verdict::Error(error) => {
                    let (message, hint) = (error.in_words(), error.hint());
                    let picture = cel::picture(Drawing {
                        origin: &selector.origin,
                        expression: selector.program.source(),
                        range: error.range,
                        at: None,
                        message: &message,
                        hint,
                        note: None,
                    });
                    return Judgement::Failed { message, hint, picture };
                }
            }
        }
        row.trouble.clone().map_or(Judgement::Kept, Judgement::Unused)
    }
}

fn parts(program: &Program, device: &Device<'_>) -> Vec<Part> {
    let step = |step: phalanx_cel::Step| Part {
        text: step.text,
        values: step.reads.into_iter().map(|read| (read.name, read.value)).collect(),
    };
    program.explain(device).into_iter().map(step).collect()
}
