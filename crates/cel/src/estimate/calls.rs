//! What calls and operators can cost, and how large their results can be.

use super::size::{Path, Size, times};
use super::{Argument, Estimator};
use crate::ast::{Kind, NodeId};
use crate::cost::LIST;
use crate::functions::signatures::{Function, Signature};
use crate::types::Type;

/// What a call costs beside its arguments, and the size of what it gives, if that is known.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    cost: u64,
    size: Option<Size>,
}

fn costs(cost: u64) -> Estimate {
    Estimate { cost, size: None }
}

/// A tenth of a unit for each character.
const TRAVERSE: f64 = 0.1;
/// A quarter for each character of a pattern.
const PATTERN: f64 = 0.25;
/// The longest pattern of a named format, as it is estimated.
const NAMED_PATTERN: f64 = 128.0 * PATTERN;

/// A target and the arguments after it.
type Arguments<'x, 'a> = (Option<&'x Argument<'a>>, &'x [Argument<'a>]);

impl<'a> Estimator<'a> {
    fn argument(&mut self, id: NodeId) -> Argument<'a> {
        let (path, size) = (self.place(id), self.size(id));
        Argument { path, t: self.t(id), node: Some(self.kind(id)), id: Some(id), size }
    }

    /// The cost of a call with its arguments; the variants that fit cost as the dearest of them.
    pub(super) fn call(
        &mut self,
        id: NodeId,
        name: &str,
        target: Option<NodeId>,
        args: &[NodeId],
    ) -> u64 {
        if let ("dyn", None, [argument]) = (name, target, args) {
            let cost = self.cost(*argument);
            self.copy(id, *argument);
            return cost.saturating_add(1);
        }
        let mut sum: u64 = 0;
        let mut arms = Vec::with_capacity(args.len());
        let mut arguments = Vec::with_capacity(args.len());
        for argument in args {
            let cost = self.cost(*argument);
            sum = sum.saturating_add(cost);
            arms.push(cost);
            arguments.push(self.argument(*argument));
        }
        let target = target.map(|target| {
            sum = sum.saturating_add(self.cost(target));
            self.argument(target)
        });
        if let ("_?_:_", [_, then, other], [condition, a, b]) = (name, &arguments[..], &arms[..]) {
            let size = then.size.unwrap_or(Size::UNKNOWN);
            let size = size.union(other.size.unwrap_or(Size::UNKNOWN));
            self.sizes[id as usize] = Some(size);
            self.unite(id, then.id, other.id);
            return condition.saturating_add(*a.max(b));
        }
        let (mut most, mut result) = (0, None);
        let checked = self.checked;
        for variant in &checked.candidates[id as usize] {
            let of = (target.as_ref(), &arguments[..]);
            let estimate = self.variant(id, name, variant, of);
            most = most.max(estimate.cost);
            result = match (result, estimate.size) {
                (Some(a), Some(b)) => Some(Size::union(a, b)),
                (a, b) => a.or(b),
            };
            self.indexed(id, name, variant, args, &mut result);
            if result.is_none() {
                result = self.size(id);
            }
        }
        self.sizes[id as usize] = result.or(self.sizes[id as usize]);
        sum.saturating_add(most)
    }

    /// What an element or an entry is, and how large.
    fn indexed(
        &mut self,
        id: NodeId,
        name: &str,
        variant: &Signature,
        args: &[NodeId],
        result: &mut Option<Size>,
    ) {
        let part = match (name, variant.arguments.first()) {
            ("_[_]", Some(Type::List(_))) => "@items",
            ("_[_]", Some(Type::Map(_))) => "@values",
            _ => return,
        };
        if let Some(operand) = args.first() {
            *result = self.inner(*operand).map(|inner| inner.value);
            let path = self.place(*operand);
            self.extend(id, path, part);
        }
    }

    /// Notes for a node what two others have in them.
    fn unite(&mut self, id: NodeId, a: Option<NodeId>, b: Option<NodeId>) {
        if let (Some(a), Some(b)) = (a.and_then(|a| self.inner(a)), b.and_then(|b| self.inner(b))) {
            self.inners[id as usize] = Some(a.union(b));
        }
    }

    /// The size as the libraries ask for it.
    fn sized(&self, argument: &Argument<'_>) -> Size {
        let known = || self.device.size(&self.paths, argument.path);
        argument.size.or_else(known).unwrap_or(Size::UNKNOWN)
    }

    /// An element of a list, as far as it is known without a look at its literal.
    fn element(&mut self, list: &Argument<'a>) -> Option<Argument<'a>> {
        let t = match list.t {
            Type::List(element) | Type::Optional(element) => element,
            Type::Map(pair) => &pair.0,
            _ => return None,
        };
        let path = match list.path.is_nowhere() {
            true => Path::NOWHERE,
            false => self.paths.append_copy(list.path, "@items"),
        };
        Some(Argument { path, t, node: None, id: None, size: None })
    }

    fn variant(
        &mut self,
        id: NodeId,
        name: &str,
        variant: &Signature,
        of: Arguments<'_, 'a>,
    ) -> Estimate {
        match variant.function {
            Some(function) => self.function(name, function, variant, of),
            None => self.operator(id, name, variant, of.1),
        }
    }

    fn operator(
        &mut self,
        id: NodeId,
        name: &str,
        variant: &Signature,
        args: &[Argument<'a>],
    ) -> Estimate {
        let [left, right] = args else { return costs(1) };
        let size = |argument: &Argument<'_>| argument.size.unwrap_or(Size::UNKNOWN);
        let text = matches!(variant.arguments.first(), Some(Type::Str | Type::Bytes));
        match name {
            "@in" if matches!(variant.arguments.get(1), Some(Type::List(_))) => {
                costs(times(size(right).max, 1.0))
            }
            "_+_" if text || matches!(variant.result, Type::List(_)) => {
                let sum = size(left).add(size(right));
                self.unite(id, left.id, right.id);
                let cost = if text { times(sum.max, TRAVERSE) } else { 1 };
                Estimate { cost, size: Some(sum) }
            }
            "_==_" | "_!=_" => match self.equality(name, left, right) {
                Some(estimate) => estimate,
                None => costs(times(size(left).max.min(size(right).max), TRAVERSE)),
            },
            "_<_" | "_<=_" | "_>_" | "_>=_" if text => {
                costs(times(size(left).max.min(size(right).max), TRAVERSE))
            }
            _ => costs(1),
        }
    }

    /// `==` between two values of a type of Kubernetes.
    fn equality(&self, name: &str, left: &Argument<'_>, right: &Argument<'_>) -> Option<Estimate> {
        if name != "_==_" || left.t != right.t {
            return None;
        }
        match left.t {
            Type::Ip | Type::Cidr | Type::Quantity | Type::Semver | Type::Authorization(_) => {
                Some(costs(1))
            }
            Type::Format => Some(costs(times(64, TRAVERSE))),
            Type::Url => {
                let size = right.size.unwrap_or(Size::exactly(1));
                Some(costs(times(size.max, TRAVERSE)))
            }
            _ => None,
        }
    }

    /// A function: those over texts here, over lists and the like below.
    fn function(
        &mut self,
        name: &str,
        function: Function,
        variant: &Signature,
        of: Arguments<'_, 'a>,
    ) -> Estimate {
        let (target, args) = of;
        let first = args.first().map_or(Size::UNKNOWN, |argument| self.sized(argument));
        let text = target.map_or(first, |target| self.sized(target));
        let traversed = |size: Size| costs(times(size.max, TRAVERSE));
        match function {
            Function::ToBytes if variant.arguments == [Type::Str] => Estimate {
                cost: times(first.max, TRAVERSE),
                size: Some(Size { min: first.min, max: first.max.wrapping_mul(4) }),
            },
            Function::ToStr if variant.arguments == [Type::Bytes] => Estimate {
                cost: times(first.max, TRAVERSE),
                size: Some(Size { min: first.min / 4, max: first.max }),
            },
            Function::Quote => Estimate {
                cost: times(first.max, TRAVERSE),
                size: Some(Size {
                    min: first.min.wrapping_add(2),
                    max: first.max.wrapping_mul(2).wrapping_add(2),
                }),
            },
            Function::Format => traversed(text),
            Function::StartsWith
            | Function::EndsWith
            | Function::Quantity
            | Function::IsQuantity
            | Function::Semver
            | Function::IsSemver
            | Function::Cidr
            | Function::IsIp
            | Function::IsCidr => traversed(first),
            Function::Ip if target.is_none() => traversed(first),
            Function::IsCanonical => costs(times(first.max, 2.0 * TRAVERSE)),
            Function::Url => Estimate { cost: times(first.max, TRAVERSE), size: Some(first) },
            Function::LowerAscii | Function::UpperAscii | Function::Substring | Function::Trim => {
                Estimate { cost: times(text.max, TRAVERSE), size: Some(text) }
            }
            Function::Contains => {
                costs(times(text.max, TRAVERSE).saturating_mul(times(first.max, TRAVERSE)))
            }
            Function::Matches | Function::Find | Function::FindAll => {
                let pattern = if target.is_some() {
                    Some(first)
                } else {
                    args.get(1).map(|pattern| self.sized(pattern))
                };
                let cost = pattern_cost(text, pattern.unwrap_or(Size::UNKNOWN));
                let size = (name != "matches").then_some(Size { min: 0, max: text.max });
                Estimate { cost, size }
            }
            Function::Validate => costs(times(times(first.max, TRAVERSE), NAMED_PATTERN)),
            Function::Replace => self.replace(text, args),
            Function::Split => self.split(text, args),
            Function::ContainsIp | Function::ContainsCidr => {
                let inner = if function == Function::ContainsCidr { 2 + 1 } else { 0 };
                let parsed = matches!(variant.arguments.get(1), Some(Type::Str));
                // An address has at most 16 bytes, and is looked at twice.
                let parsed = if parsed { times(first.max, TRAVERSE) } else { 0 };
                costs(parsed.saturating_add(4 + inner))
            }
            Function::AuthorizationCheck => costs(350_000),
            Function::AuthorizationSelector => costs(selector_cost(first.max)),
            _ => self.collection(function, variant, of, text),
        }
    }

    fn replace(&self, text: Size, args: &[Argument<'_>]) -> Estimate {
        let size = |at: usize| args.get(at).map_or(Size::UNKNOWN, |a| self.sized(a));
        let (old, new) = (size(0), size(1));
        let (mut count, mut kept) = (Size::exactly(0), Size::exactly(0));
        if old.min == 0 {
            count.max = text.max.saturating_add(1);
            kept.max = text.max;
        } else if new.max <= old.min {
            kept.max = text.max;
        } else {
            count.max = (text.max as f64 / old.min as f64).ceil() as u64;
        }
        if old.max == 0 {
            count.min = text.min.saturating_add(1);
            kept.min = text.min;
        } else if old.max <= new.min {
            kept.min = text.min;
        } else {
            count.min = (text.min as f64 / old.max as f64).ceil() as u64;
        }
        let made = count.multiply(new).add(kept);
        Estimate { cost: times(text.max, 2.0 * TRAVERSE), size: Some(made) }
    }

    fn split(&self, text: Size, args: &[Argument<'_>]) -> Estimate {
        let max = match args.get(1).and_then(|limit| limit.node) {
            Some(Kind::Int(limit)) => *limit as u64,
            _ => text.max,
        };
        let size = Some(Size { min: 0, max });
        Estimate { cost: times(text.max, 2.0 * TRAVERSE), size }
    }

    /// Functions over lists, and all that cost one unit.
    fn collection(
        &mut self,
        function: Function,
        variant: &Signature,
        (target, args): Arguments<'_, 'a>,
        of: Size,
    ) -> Estimate {
        let written = |at: usize, otherwise: u64| match args.get(at).and_then(|a| a.node) {
            Some(Kind::Int(value)) => u64::try_from(*value).unwrap_or(0),
            _ => otherwise,
        };
        match (function, target) {
            (
                Function::IsSorted
                | Function::Sum
                | Function::Min
                | Function::Max
                | Function::IndexOf
                | Function::LastIndexOf
                | Function::Includes,
                Some(target),
            ) => self.looked_through(function, target),
            (Function::Join, Some(target)) => self.join(target, args),
            (Function::SetContains | Function::SetIntersects | Function::SetEquivalent, _) => {
                let size = |at: usize| args.get(at).map_or(Size::UNKNOWN, |a| self.sized(a));
                let pairs = size(0).multiply(size(1));
                let twice = function == Function::SetEquivalent;
                costs(times(pairs.max, if twice { 2.0 } else { 1.0 }).saturating_add(1))
            }
            (Function::Slice, _) => {
                let length = written(1, of.max).wrapping_sub(written(0, 0));
                made(1.0, Size::exactly(length))
            }
            (Function::Range, _) => made(1.0, Size::exactly(written(0, u64::MAX))),
            (Function::Reverse, _) => made(1.0, of),
            (Function::Flatten, _) => {
                let depth = if args.is_empty() { 1 } else { written(0, u64::MAX) };
                made(depth as f64, of)
            }
            (Function::Distinct, _) => made(2.0, of.multiply(of)),
            (Function::Sort, _) => sorted(of, variant.arguments.first()),
            (Function::SortByKeys, _) => {
                let keys = args.first().map_or(Size::UNKNOWN, |keys| self.sized(keys));
                sorted(keys, variant.arguments.get(1))
            }
            _ => costs(1),
        }
    }

    fn looked_through(&mut self, function: Function, target: &Argument<'a>) -> Estimate {
        let size = self.sized(target).max;
        if let Some(element) = self.element(target) {
            let text = matches!(element.t, Type::Str | Type::Bytes);
            let each = if text { times(self.sized(&element).max, TRAVERSE) } else { 0 };
            return costs(size.saturating_mul(each.saturating_add(1)));
        }
        match function {
            Function::Includes => costs(size),
            _ => costs(times(size, TRAVERSE)),
        }
    }

    fn join(&mut self, target: &Argument<'a>, args: &[Argument<'a>]) -> Estimate {
        let list = self.sized(target);
        let mut made = match self.element(target) {
            Some(element) => list.multiply(self.sized(&element)),
            None => Size::exactly(0),
        };
        if let Some(separator) = args.first() {
            let between = Size { min: list.min.saturating_sub(1), max: list.max.saturating_sub(1) };
            made = made.add(self.sized(separator).multiply(between));
        }
        Estimate { cost: times(made.max, TRAVERSE), size: Some(made) }
    }
}

/// A pattern held against a text.
fn pattern_cost(text: Size, pattern: Size) -> u64 {
    times(text.max.saturating_add(1), TRAVERSE).saturating_mul(times(pattern.max, PATTERN))
}

/// Parsing a selector of so many characters.
fn selector_cost(length: u64) -> u64 {
    let requirements = times(times(length, 0.5), 50.0);
    LIST.saturating_add(times(length, TRAVERSE)).saturating_add(requirements)
}

/// Making a list.
fn made(factor: f64, size: Size) -> Estimate {
    let cost = times(size.max, factor).saturating_add(1 + LIST);
    Estimate { cost, size: Some(size) }
}

/// Comparing all elements of a list with all.
fn sorted(size: Size, list: Option<&Type>) -> Estimate {
    let text = match list {
        Some(Type::List(element)) => matches!(**element, Type::Str | Type::Bytes),
        _ => false,
    };
    made(if text { 2.0 + TRAVERSE } else { 2.0 }, size.multiply(size))
}
