//! Tokens to a syntax tree: CEL's grammar, with the macros of Kubernetes' environment.
//!
//! Written here rather than taken from a crate for three reasons: errors and explanations need
//! the place of every node, macros are to stay whole, and the depth limit has to hold while the
//! tree is built, for everything after it (checking, lowering, evaluating, dropping) may recurse
//! that deep and no deeper.

use crate::ast::{
    Arithmetic, Ast, Binary, Comparison, Element, Entry, Fold, FoldKind, Kind, Node, NodeId, dotted,
};
use crate::error::{CompileError, CompileErrorKind};
use crate::hints;
use crate::lexer::{Token, TokenKind, lex};
use crate::{MAX_DEPTH, MAX_LENGTH};

/// Words that CEL keeps for later and that cannot name a variable.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

type Parsed = Result<NodeId, CompileError>;

/// Parses a whole expression.
pub(crate) fn parse(source: &str) -> Result<Ast, CompileError> {
    if source.len() > MAX_LENGTH {
        return Err(CompileError::new(
            CompileErrorKind::TooLong,
            source,
            0,
            (0, source.len() as u32),
            format!("the expression has {} bytes; at most {MAX_LENGTH} are allowed", source.len()),
        ));
    }
    let (tokens, error) = lex(source);
    let parser = Parser { source, tokens, at: 0, nodes: Vec::new(), nesting: 0 };
    let parsed = parser.whole();
    let Some(error) = error else { return parsed };
    let range = (error.start as u32, error.end as u32);
    let hint = hints::unread(source.get(error.start..error.end).unwrap_or_default());
    let unread = CompileError::new(CompileErrorKind::Syntax, source, range.0, range, error.message);
    let unread = unread.with_hint(hint);
    // Of two faults the first counts: what stands before a bad token may not go together.
    match parsed {
        Err(fault) if (fault.line, fault.column) < (unread.line, unread.column) => Err(fault),
        Ok(_) | Err(_) => Err(unread),
    }
}

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
    nodes: Vec<Node>,
    nesting: usize,
}

impl Parser<'_> {
    fn whole(mut self) -> Result<Ast, CompileError> {
        let root = self.expression()?;
        match self.peek() {
            TokenKind::End => Ok(Ast { nodes: self.nodes, root }),
            _ => Err(self.unexpected("the end of the expression or an operator")),
        }
    }

    fn token(&self) -> &Token {
        &self.tokens[self.at]
    }

    fn peek(&self) -> &TokenKind {
        &self.token().kind
    }

    /// Takes the current token, of which its place stays; the last one, [`TokenKind::End`], stays
    /// whole.
    fn next(&mut self) -> Token {
        let last = self.at + 1 >= self.tokens.len();
        let Token { kind, start, end } = &mut self.tokens[self.at];
        let token =
            Token { kind: std::mem::replace(kind, TokenKind::End), start: *start, end: *end };
        if !last {
            self.at += 1;
        }
        token
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), TokenKind::Symbol(s) if *s == symbol)
    }

    fn accept(&mut self, symbol: &str) -> Option<u32> {
        self.is(symbol).then(|| self.next().start)
    }

    fn expect(&mut self, symbol: &str) -> Result<u32, CompileError> {
        match self.accept(symbol) {
            Some(start) => Ok(start),
            None => Err(self.unexpected(&format!("'{symbol}'"))),
        }
    }

    fn unexpected(&self, wanted: &str) -> CompileError {
        let token = self.token();
        let found = match self.source.get(token.start as usize..token.end as usize) {
            Some("") | None => "<EOF>",
            Some(text) => text,
        };
        let message = format!("Syntax error: mismatched input '{found}' expecting {wanted}");
        self.error_at(CompileErrorKind::Syntax, token.start, (token.start, token.end), message)
    }

    fn error_at(
        &self,
        kind: CompileErrorKind,
        at: u32,
        range: (u32, u32),
        message: impl Into<String>,
    ) -> CompileError {
        CompileError::new(kind, self.source, at, range, message.into())
    }

    fn error_on(&self, id: NodeId, message: &str) -> CompileError {
        let node = &self.nodes[id as usize];
        self.error_at(CompileErrorKind::Syntax, node.at, (node.start, node.end), message)
    }

    fn start(&self, id: NodeId) -> u32 {
        self.nodes[id as usize].start
    }

    /// End of the token before the current one.
    fn end(&self) -> u32 {
        self.at.checked_sub(1).map_or(0, |at| self.tokens[at].end)
    }

    fn add(&mut self, kind: Kind, start: u32, at: u32) -> Parsed {
        let end = self.end().max(start);
        let mut below = 0;
        kind.children(&mut |child| below = below.max(self.nodes[child as usize].depth));
        let depth = below + 1;
        if usize::from(depth) > MAX_DEPTH {
            return Err(self.too_deep(at, (start, end)));
        }
        self.nodes.push(Node { kind, start, end, at, depth });
        Ok((self.nodes.len() - 1) as NodeId)
    }

    fn too_deep(&self, at: u32, range: (u32, u32)) -> CompileError {
        let message = format!("the expression is nested deeper than {MAX_DEPTH} levels");
        self.error_at(CompileErrorKind::TooDeep, at, range, message)
    }

    fn expression(&mut self) -> Parsed {
        self.nesting += 1;
        if self.nesting > MAX_DEPTH {
            let token = self.token();
            return Err(self.too_deep(token.start, (token.start, token.end)));
        }
        let condition = self.chain("||")?;
        let result = match self.accept("?") {
            None => condition,
            Some(at) => {
                let then = self.chain("||")?;
                self.expect(":")?;
                let other = self.expression()?;
                let start = self.start(condition);
                self.add(Kind::Conditional { condition, then, other }, start, at)?
            }
        };
        self.nesting -= 1;
        Ok(result)
    }

    /// A chain of `||`, or of `&&` inside it.
    fn chain(&mut self, operator: &'static str) -> Parsed {
        let disjunction = operator == "||";
        let operand = |p: &mut Self| if disjunction { p.chain("&&") } else { p.binary(0) };
        let first = operand(self)?;
        let Some(at) = self.accept(operator) else { return Ok(first) };
        let mut terms = vec![first, operand(self)?];
        while self.accept(operator).is_some() {
            terms.push(operand(self)?);
        }
        let start = self.start(first);
        let kind = if disjunction { Kind::Or(terms) } else { Kind::And(terms) };
        self.add(kind, start, at)
    }

    /// Left-associative operators; `level` 0 holds relations, 1 sums, 2 products.
    fn binary(&mut self, level: u8) -> Parsed {
        let mut left = if level < 2 { self.binary(level + 1)? } else { self.unary()? };
        while let Some(operator) = operator(self.peek()).filter(|(l, _)| *l == level) {
            let at = self.next().start;
            let right = if level < 2 { self.binary(level + 1)? } else { self.unary()? };
            let start = self.start(left);
            left = self.add(Kind::Binary(operator.1, left, right), start, at)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        let symbol = if self.is("!") {
            "!"
        } else if self.is("-") {
            "-"
        } else {
            return self.member(false);
        };
        let first = self.token().start;
        let mut count = 0;
        while self.accept(symbol).is_some() {
            count += 1;
        }
        // A single sign before a number is part of the literal.
        let number = matches!(self.peek(), TokenKind::Int(_) | TokenKind::Double(_));
        let negative = symbol == "-" && number && count == 1;
        let inner = if negative { self.member(true)? } else { self.member_after(symbol)? };
        let count = count - i32::from(negative);
        match (count % 2 == 0, symbol) {
            (true, _) => Ok(inner),
            (false, "!") => self.add(Kind::Not(inner), first, first),
            (false, _) => self.add(Kind::Negate(inner), first, first),
        }
    }

    /// The operand of `!` may be a negative number, which is then refused by its type.
    fn member_after(&mut self, symbol: &str) -> Parsed {
        let negative = symbol == "!" && self.accept("-").is_some();
        if negative && !matches!(self.peek(), TokenKind::Int(_) | TokenKind::Double(_)) {
            return Err(self.unexpected("a number"));
        }
        self.member(negative)
    }

    fn member(&mut self, negative: bool) -> Parsed {
        let mut operand = self.primary(negative)?;
        loop {
            if let Some(dot) = self.accept(".") {
                operand = self.field(operand, dot)?;
            } else if let Some(bracket) = self.accept("[") {
                let optional = self.accept("?").is_some();
                let index = self.expression()?;
                self.expect("]")?;
                let start = self.start(operand);
                operand = self.add(Kind::Index { operand, index, optional }, start, bracket)?;
            } else if self.is("{") {
                return Err(self.message(operand)?);
            } else {
                return Ok(operand);
            }
        }
    }

    /// The error for `Name{…}`: no message can be made here.
    fn message(&mut self, operand: NodeId) -> Result<CompileError, CompileError> {
        let Some(name) = dotted(&self.nodes, operand) else {
            return Err(self.unexpected("an operator"));
        };
        let token = self.next();
        let range = (self.start(operand), token.start);
        while !self.is("}") {
            let _ = self.accept("?");
            if !matches!(self.peek(), TokenKind::Ident(_) | TokenKind::Quoted(_)) {
                return Err(self.unexpected("the name of a field"));
            }
            self.next();
            self.expect(":")?;
            self.expression()?;
            if self.accept(",").is_none() {
                break;
            }
        }
        self.expect("}")?;
        if name.starts_with("google.protobuf.") || name == "kubernetes.DRADevice" {
            let message = format!(
                "Kubernetes can make a message of type '{name}', but that is not supported here: \
                 whether the expression selects a device is not known"
            );
            return Ok(self.error_at(CompileErrorKind::Unsupported, token.start, range, message));
        }
        let message = format!("undeclared reference to '{name}' (in container '')");
        Ok(self.error_at(CompileErrorKind::UndeclaredReference, token.start, range, message))
    }

    fn field(&mut self, operand: NodeId, dot: u32) -> Parsed {
        let optional = self.accept("?").is_some();
        if !matches!(self.peek(), TokenKind::Ident(_) | TokenKind::Quoted(_)) {
            return Err(self.unexpected("the name of a field or function"));
        }
        let (field, quoted) = match self.next().kind {
            TokenKind::Quoted(field) => (field, true),
            TokenKind::Ident(field) => (field, false),
            _ => (String::new(), false),
        };
        let start = self.start(operand);
        if !optional && !quoted && self.is("(") {
            let at = self.token().start;
            let args = self.arguments("(", ")")?;
            return self.receiver_call(operand, field, args, at);
        }
        self.add(Kind::Select { operand, field, optional }, start, dot)
    }

    fn arguments(&mut self, open: &str, close: &str) -> Result<Vec<NodeId>, CompileError> {
        self.expect(open)?;
        let mut args = Vec::new();
        while !self.is(close) {
            args.push(self.expression()?);
            if self.accept(",").is_none() {
                break;
            }
            if self.is(close) {
                return Err(self.unexpected("an argument"));
            }
        }
        self.expect(close)?;
        Ok(args)
    }

    fn primary(&mut self, negative: bool) -> Parsed {
        let token = self.next();
        let start = if negative { self.tokens[self.at - 2].start } else { token.start };
        let kind = match token.kind {
            TokenKind::Null => Kind::Null,
            TokenKind::True => Kind::Bool(true),
            TokenKind::False => Kind::Bool(false),
            TokenKind::Str(text) => Kind::Str(text),
            TokenKind::Bytes(bytes) => Kind::Bytes(bytes),
            TokenKind::Double(value) => Kind::Double(if negative { -value } else { value }),
            TokenKind::Uint(value) => Kind::Uint(value),
            TokenKind::Int(value) => {
                let signed = if negative { -i128::from(value) } else { i128::from(value) };
                match i64::try_from(signed) {
                    Ok(value) => Kind::Int(value),
                    Err(_) => {
                        let range = (start, token.end);
                        let kind = CompileErrorKind::Syntax;
                        return Err(self.error_at(kind, start, range, "invalid int literal"));
                    }
                }
            }
            TokenKind::Ident(name) => return self.name(name, token.start),
            TokenKind::Symbol("(") => {
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            TokenKind::Symbol("[") => return self.list(token.start),
            TokenKind::Symbol("{") => return self.map(token.start),
            TokenKind::Symbol(".") => {
                let after = self.next();
                match after.kind {
                    TokenKind::Ident(name) => return self.name(format!(".{name}"), after.start),
                    _ => return Err(self.expected_value(after.start)),
                }
            }
            TokenKind::Symbol(_) | TokenKind::Quoted(_) | TokenKind::End | TokenKind::In => {
                return Err(self.expected_value(token.start));
            }
        };
        self.add(kind, start, start)
    }

    /// The error for a place where a value must begin and none does.
    fn expected_value(&self, at: u32) -> CompileError {
        let rest = self.source.get(at as usize..).unwrap_or("");
        let found = rest.chars().next().map_or("<EOF>".to_owned(), String::from);
        let message = format!("Syntax error: extraneous input '{found}' expecting a value");
        let end = at + if rest.is_empty() { 0 } else { found.len() as u32 };
        self.error_at(CompileErrorKind::Syntax, at, (at, end), message)
    }

    fn name(&mut self, name: String, start: u32) -> Parsed {
        if RESERVED.contains(&name.as_str()) {
            let range = (start, start + name.len() as u32);
            let message = format!("reserved identifier: {name}");
            return Err(self.error_at(CompileErrorKind::Syntax, start, range, message));
        }
        if !self.is("(") {
            return self.add(Kind::Ident(name), start, start);
        }
        let at = self.token().start;
        let args = self.arguments("(", ")")?;
        if name == "has"
            && let [argument] = args[..]
        {
            return self.has(argument, start, at);
        }
        // There is one container only, so that a leading dot changes nothing.
        let function = name.strip_prefix('.').unwrap_or(&name).to_owned();
        self.add(Kind::Call { target: None, function, args }, start, at)
    }

    fn has(&mut self, argument: NodeId, start: u32, at: u32) -> Parsed {
        match &self.nodes[argument as usize].kind {
            Kind::Select { operand, field, optional: false } => {
                let kind = Kind::Has { operand: *operand, field: field.clone() };
                self.add(kind, start, at)
            }
            _ => Err(self.error_on(argument, "invalid argument to has() macro").with_hint(Some(
                "has() takes a field selection, such as has(device.attributes[\"d\"].x)".to_owned(),
            ))),
        }
    }

    fn list(&mut self, start: u32) -> Parsed {
        let mut elements = Vec::new();
        // A comma may follow the last element, even where there is none.
        let none = self.accept(",").is_some();
        while !none && !self.is("]") {
            let optional = self.accept("?").is_some();
            elements.push(Element { value: self.expression()?, optional });
            if self.accept(",").is_none() {
                break;
            }
        }
        self.expect("]")?;
        self.add(Kind::List(elements), start, start)
    }

    fn map(&mut self, start: u32) -> Parsed {
        let mut entries = Vec::new();
        let none = self.accept(",").is_some();
        while !none && !self.is("}") {
            let optional = self.accept("?").is_some();
            let key = self.expression()?;
            self.expect(":")?;
            entries.push(Entry { key, value: self.expression()?, optional });
            if self.accept(",").is_none() {
                break;
            }
        }
        self.expect("}")?;
        self.add(Kind::Map(entries), start, start)
    }

    /// `target.function(args)`: a macro or a call.
    fn receiver_call(
        &mut self,
        target: NodeId,
        function: String,
        args: Vec<NodeId>,
        at: u32,
    ) -> Parsed {
        let start = self.start(target);
        if let ("sortBy", [var, key]) = (function.as_str(), args.as_slice()) {
            return self.sort_by(target, *var, *key, at);
        }
        let kind = match (function.as_str(), args.as_slice()) {
            ("bind", [var, init, body]) if self.is_name(target, "cel") => {
                Kind::Bind { var: self.simple_name(*var)?, init: *init, body: *body }
            }
            ("optMap" | "optFlatMap", [var, body]) => {
                let flat = function == "optFlatMap";
                Kind::OptMap { target, var: self.simple_name(*var)?, body: *body, flat }
            }
            _ => match fold_kind(&function, args.len()) {
                Some((kind, vars, filtered)) => {
                    let var2 = if vars == 2 { Some(self.simple_name(args[1])?) } else { None };
                    let filter = filtered.then(|| args[vars]);
                    let body = args[vars + usize::from(filtered)];
                    let var = self.simple_name(args[0])?;
                    Kind::Fold(Fold { kind, range: target, var, var2, filter, body })
                }
                None => Kind::Call { target: Some(target), function, args },
            },
        };
        self.add(kind, start, at)
    }

    /// `target.sortBy(x, key)`: keys are computed for the bound list, which is then sorted by them.
    fn sort_by(&mut self, target: NodeId, var: NodeId, key: NodeId, at: u32) -> Parsed {
        let sortable = matches!(
            self.nodes[target as usize].kind,
            Kind::List(_)
                | Kind::Select { .. }
                | Kind::Has { .. }
                | Kind::Ident(_)
                | Kind::Fold(_)
                | Kind::Bind { .. }
                | Kind::OptMap { .. }
                | Kind::Call { .. }
                | Kind::Index { .. }
                | Kind::Not(_)
                | Kind::Negate(_)
                | Kind::Binary(..)
                | Kind::And(_)
                | Kind::Or(_)
                | Kind::Conditional { .. }
        );
        if !sortable {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call or \
                           select expression";
            return Err(self.error_on(target, message));
        }
        let (start, input) = (self.start(target), "@__sortBy_input__".to_owned());
        let var = self.simple_name(var)?;
        let range = self.add(Kind::Ident(input.clone()), start, at)?;
        let keys = Fold { kind: FoldKind::Map, range, var, var2: None, filter: None, body: key };
        let keys = self.add(Kind::Fold(keys), start, at)?;
        let list = self.add(Kind::Ident(input.clone()), start, at)?;
        let function = "@sortByAssociatedKeys".to_owned();
        let sort = Kind::Call { target: Some(list), function, args: vec![keys] };
        let body = self.add(sort, start, at)?;
        self.add(Kind::Bind { var: input, init: target, body }, start, at)
    }

    fn is_name(&self, id: NodeId, name: &str) -> bool {
        matches!(&self.nodes[id as usize].kind, Kind::Ident(n) if n == name)
    }

    fn simple_name(&self, id: NodeId) -> Result<String, CompileError> {
        match &self.nodes[id as usize].kind {
            Kind::Ident(name) => Ok(name.clone()),
            _ => Err(self.error_on(id, "argument must be a simple name")),
        }
    }
}

/// Which macro a receiver call is: what it folds to, how many variables it declares, and whether
/// a filter stands before the body.
fn fold_kind(function: &str, arguments: usize) -> Option<(FoldKind, usize, bool)> {
    match (function, arguments) {
        ("all", 2 | 3) => Some((FoldKind::All, arguments - 1, false)),
        ("exists", 2 | 3) => Some((FoldKind::Exists, arguments - 1, false)),
        ("exists_one", 2 | 3) => Some((FoldKind::ExistsOne, arguments - 1, false)),
        ("existsOne", 3) => Some((FoldKind::ExistsOne, 2, false)),
        ("map", 2) => Some((FoldKind::Map, 1, false)),
        ("map", 3) => Some((FoldKind::Map, 1, true)),
        ("filter", 2) => Some((FoldKind::Filter, 1, false)),
        ("transformList", 3 | 4) => Some((FoldKind::Map, 2, arguments == 4)),
        ("transformMap", 3 | 4) => Some((FoldKind::MapValues, 2, arguments == 4)),
        ("transformMapEntry", 3 | 4) => Some((FoldKind::MapEntries, 2, arguments == 4)),
        _ => None,
    }
}

/// Level and meaning of a binary operator.
fn operator(token: &TokenKind) -> Option<(u8, Binary)> {
    let TokenKind::Symbol(symbol) = token else {
        return (*token == TokenKind::In).then_some((0, Binary::In));
    };
    let operator = match *symbol {
        "==" => (0, Binary::Equal),
        "!=" => (0, Binary::NotEqual),
        "<" => (0, Binary::Compare(Comparison::Less)),
        "<=" => (0, Binary::Compare(Comparison::LessOrEqual)),
        ">" => (0, Binary::Compare(Comparison::Greater)),
        ">=" => (0, Binary::Compare(Comparison::GreaterOrEqual)),
        "+" => (1, Binary::Arithmetic(Arithmetic::Add)),
        "-" => (1, Binary::Arithmetic(Arithmetic::Sub)),
        "*" => (2, Binary::Arithmetic(Arithmetic::Mul)),
        "/" => (2, Binary::Arithmetic(Arithmetic::Div)),
        "%" => (2, Binary::Arithmetic(Arithmetic::Mod)),
        _ => return None,
    };
    Some(operator)
}
