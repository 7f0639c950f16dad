//! What is evaluated: the checked tree with names resolved, constants computed, regular
//! expressions compiled, and paths into the device as single steps.

use regex::Regex;

use crate::ast::{Arithmetic, Comparison, FoldKind, NodeId};
use crate::functions::signatures::Function;
use crate::value::Value;

/// Index of a step in its program.
pub(crate) type StepId = u32;

/// A program: steps after their operands.
#[derive(Debug)]
pub(crate) struct Ir {
    pub(crate) steps: Vec<Step>,
    pub(crate) root: StepId,
}

impl Ir {
    pub(crate) fn step(&self, id: StepId) -> &Step {
        &self.steps[id as usize]
    }
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) op: Op,
    /// The part of the expression that it came from.
    pub(crate) node: NodeId,
    /// What it costs apart from its operands and from what depends on their values.
    pub(crate) cost: u64,
}

/// Attributes or capacities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Attributes,
    Capacity,
}

#[derive(Debug)]
pub(crate) enum Op {
    Constant(Value<'static>),
    Device,
    Local(u32),
    Driver,
    AllowMultipleAllocations,
    /// `device.attributes`
    Domains(Table),
    /// `device.attributes["domain"]`
    Domain(Table, Box<str>),
    /// `device.attributes["domain"].id`
    Entry(Table, Box<str>, Box<str>),
    Select {
        operand: StepId,
        field: Box<str>,
        optional: bool,
    },
    Has {
        operand: StepId,
        field: Box<str>,
    },
    Index {
        operand: StepId,
        index: StepId,
        optional: bool,
    },
    Not(StepId),
    Negate(StepId),
    /// The bool: whether the cost goes by the size of texts.
    Arithmetic(Arithmetic, bool, StepId, StepId),
    /// The bool: as above.
    Compare(Comparison, bool, StepId, StepId),
    Equal(StepId, StepId),
    NotEqual(StepId, StepId),
    In {
        value: StepId,
        within: StepId,
        cost: InCost,
    },
    And(Box<[StepId]>),
    Or(Box<[StepId]>),
    Conditional {
        condition: StepId,
        then: StepId,
        other: StepId,
    },
    /// Elements, and whether each is optional.
    List(Box<[(StepId, bool)]>),
    /// Keys and values, and whether each entry is optional.
    Map(Box<[(StepId, StepId, bool)]>),
    Call(Function, Variant, Box<[StepId]>),
    /// `matches`, `find` or `findAll` with a constant pattern: the text first, then what follows
    /// the pattern; the pattern's length in characters.
    Regex {
        function: Function,
        arguments: Box<[StepId]>,
        regex: Box<Regex>,
        length: u64,
    },
    /// `or` and `orValue` look at their argument only if they need it.
    OrElse {
        optional: StepId,
        other: StepId,
    },
    OrValue {
        optional: StepId,
        other: StepId,
    },
    Fold(Box<Fold>),
    Bind {
        init: StepId,
        body: StepId,
    },
    OptMap {
        target: StepId,
        body: StepId,
        flat: bool,
    },
}

/// What is known in advance of the variant of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// It goes by the values.
    Open,
    /// There is one.
    One,
    /// There is one, and its last argument is a text.
    Text,
}

/// How `in` is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InCost {
    /// A constant list of simple values, which upstream turns into a set.
    Free,
    /// A list, by its length.
    Length,
    /// A map, or unknown until it is evaluated.
    One,
}

/// A fold's variables are the last one or two locals inside filter and body.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) kind: FoldKind,
    pub(crate) range: StepId,
    pub(crate) two: bool,
    pub(crate) filter: Option<StepId>,
    pub(crate) body: StepId,
    /// What making the list of one element costs.
    pub(crate) element_cost: u64,
}
