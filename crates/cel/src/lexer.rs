//! Text to tokens, by the lexical rules of the CEL specification: literals with their escapes,
//! names, operators. White space and comments go; places are byte offsets.

/// A token and its place.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    End,
    Ident(String),
    /// A name in back quotes, which may hold dots and dashes; for fields only.
    Quoted(String),
    Int(u64),
    Uint(u64),
    Double(f64),
    Str(String),
    Bytes(Vec<u8>),
    Null,
    True,
    False,
    In,
    /// Brackets and operators, spelled.
    Symbol(&'static str),
}

/// A fault in a token, and its place.
#[derive(Debug)]
pub(crate) struct LexError {
    pub(crate) message: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The tokens of a text, [`TokenKind::End`] last: all of them, or those before the first fault.
pub(crate) fn lex(source: &str) -> (Vec<Token>, Option<LexError>) {
    let mut lexer = Lexer { source, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank();
        let start = lexer.at;
        let (kind, error) = match lexer.token() {
            Ok(kind) => (kind, None),
            Err(error) => (TokenKind::End, Some(error)),
        };
        let last = kind == TokenKind::End;
        tokens.push(Token { kind, start: start as u32, end: lexer.at as u32 });
        if last {
            return (tokens, error);
        }
    }
}

/// The bracket or operator of these two bytes, or of the first of them.
fn symbol(first: u8, second: u8) -> Option<&'static str> {
    Some(match (first, second) {
        (b'=', b'=') => "==",
        (b'!', b'=') => "!=",
        (b'<', b'=') => "<=",
        (b'>', b'=') => ">=",
        (b'&', b'&') => "&&",
        (b'|', b'|') => "||",
        (b'(', _) => "(",
        (b')', _) => ")",
        (b'[', _) => "[",
        (b']', _) => "]",
        (b'{', _) => "{",
        (b'}', _) => "}",
        (b'.', _) => ".",
        (b',', _) => ",",
        (b'-', _) => "-",
        (b'+', _) => "+",
        (b'*', _) => "*",
        (b'/', _) => "/",
        (b'%', _) => "%",
        (b'?', _) => "?",
        (b':', _) => ":",
        (b'!', _) => "!",
        (b'<', _) => "<",
        (b'>', _) => ">",
        _ => return None,
    })
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.source.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn error<T>(&self, start: usize, message: impl Into<String>) -> Result<T, LexError> {
        let end = self.at.max(start + 1).min(self.source.len());
        Err(LexError { message: message.into(), start, end })
    }

    fn skip_blank(&mut self) {
        loop {
            match self.byte(0) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'/' if self.byte(1) == b'/' => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                _ => return,
            }
        }
    }

    fn token(&mut self) -> Result<TokenKind, LexError> {
        if self.at >= self.source.len() {
            return Ok(TokenKind::End);
        }
        let first = self.byte(0);
        if let Some(prefix) = self.string_prefix() {
            return self.string(prefix);
        }
        if first.is_ascii_alphabetic() || first == b'_' {
            return Ok(self.word());
        }
        if first.is_ascii_digit() || (first == b'.' && self.byte(1).is_ascii_digit()) {
            return self.number();
        }
        if first == b'`' {
            return self.quoted();
        }
        if let Some(symbol) = symbol(first, self.byte(1)) {
            self.at += symbol.len();
            return Ok(TokenKind::Symbol(symbol));
        }
        let found = self.rest().chars().next().unwrap_or(' ');
        let start = self.at;
        self.at += found.len_utf8();
        self.error(start, format!("Syntax error: token recognition error at: '{found}'"))
    }

    fn word(&mut self) -> TokenKind {
        let rest = &self.source[self.at..];
        let mut bytes = rest.bytes();
        let end = bytes.position(|b| !(b.is_ascii_alphanumeric() || b == b'_'));
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        match word {
            "null" => TokenKind::Null,
            "true" => TokenKind::True,
            "false" => TokenKind::False,
            "in" => TokenKind::In,
            _ => TokenKind::Ident(word.to_owned()),
        }
    }

    fn quoted(&mut self) -> Result<TokenKind, LexError> {
        let start = self.at;
        let rest = &self.rest()[1..];
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
        let length = rest.find(|c| !allowed(c)).unwrap_or(rest.len());
        let name = rest[..length].to_owned();
        if length == 0 || !rest[length..].starts_with('`') {
            return self.error(start, "Syntax error: a name in back quotes is not closed");
        }
        self.at += length + 2;
        Ok(TokenKind::Quoted(name))
    }

    /// Length of a string's prefix (`r`, `b`, `br`, nothing) if a string begins here.
    fn string_prefix(&self) -> Option<usize> {
        let bytes = usize::from(matches!(self.byte(0), b'b' | b'B'));
        let raw = usize::from(matches!(self.byte(bytes), b'r' | b'R'));
        let length = bytes + raw;
        matches!(self.byte(length), b'"' | b'\'').then_some(length)
    }

    /// Whether a text in triple quotes that begins here has an end.
    fn closes(&self, triple: &str, raw: bool) -> bool {
        let mut rest = &self.rest()[triple.len()..];
        while !rest.starts_with(triple) {
            let mut characters = rest.chars();
            let Some(next) = characters.next() else { return false };
            if next == '\\' && !raw {
                characters.next();
            }
            rest = characters.as_str();
        }
        true
    }

    fn string(&mut self, prefix: usize) -> Result<TokenKind, LexError> {
        let start = self.at;
        let marks = &self.source[start..start + prefix];
        let (raw, bytes) = (marks.contains(['r', 'R']), marks.contains(['b', 'B']));
        self.at += prefix;
        let (quote, triple) = if self.byte(0) == b'"' { ("\"", "\"\"\"") } else { ("'", "'''") };
        // Three quotes that are not closed are an empty text and the beginning of another.
        let long = self.rest().starts_with(triple) && self.closes(triple, raw);
        let close = if long { triple } else { quote };
        self.at += close.len();
        let mut out = Vec::new();
        loop {
            // What stands for itself goes over as one piece.
            let rest = &self.source[self.at..];
            let special = |b: u8| matches!(b, b'"' | b'\'' | b'\\' | b'\n' | b'\r');
            let plain = rest.bytes().position(special).unwrap_or(rest.len());
            out.extend_from_slice(&rest.as_bytes()[..plain]);
            self.at += plain;
            if self.rest().starts_with(close) {
                break;
            }
            let Some(next) = self.rest().chars().next() else {
                return self.error(start, "Syntax error: the string literal is not closed");
            };
            if !long && matches!(next, '\n' | '\r') {
                return self.error(
                    start,
                    "Syntax error: a line break inside a string in single quotes; write \\n",
                );
            }
            if next == '\\' && !raw {
                // The whole literal is what upstream can't read.
                self.escape(bytes, &mut out).map_err(|error| LexError { start, ..error })?;
                continue;
            }
            self.at += next.len_utf8();
            out.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.at += close.len();
        if bytes {
            return Ok(TokenKind::Bytes(out));
        }
        match String::from_utf8(out) {
            Ok(text) => Ok(TokenKind::Str(text)),
            Err(_) => self.error(start, "Syntax error: the string literal is not UTF-8"),
        }
    }

    fn escape(&mut self, bytes: bool, out: &mut Vec<u8>) -> Result<(), LexError> {
        let start = self.at;
        self.at += 1;
        let kind = self.byte(0);
        let simple = match kind {
            b'a' => Some(7),
            b'b' => Some(8),
            b'f' => Some(12),
            b'n' => Some(b'\n'),
            b'r' => Some(b'\r'),
            b't' => Some(b'\t'),
            b'v' => Some(11),
            b'\\' | b'?' | b'"' | b'\'' | b'`' => Some(kind),
            _ => None,
        };
        if let Some(byte) = simple {
            self.at += 1;
            out.push(byte);
            return Ok(());
        }
        let (skip, digits, radix) = match kind {
            b'x' | b'X' => (1, 2, 16),
            b'u' if !bytes => (1, 4, 16),
            b'U' if !bytes => (1, 8, 16),
            b'0'..=b'3' => (0, 3, 8),
            _ => return self.error(start, "Syntax error: unknown escape in a string literal"),
        };
        self.at += skip;
        let code = self
            .rest()
            .get(..digits)
            .filter(|text| text.chars().all(|c| c.is_digit(radix)))
            .and_then(|text| u32::from_str_radix(text, radix).ok());
        let Some(code) = code else {
            return self.error(start, "Syntax error: incomplete escape in a string literal");
        };
        self.at += digits;
        if bytes {
            out.push(code.to_le_bytes()[0]);
            return Ok(());
        }
        match char::from_u32(code) {
            Some(c) => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                Ok(())
            }
            None => self.error(start, "Syntax error: the escape names no character"),
        }
    }

    fn number(&mut self) -> Result<TokenKind, LexError> {
        let start = self.at;
        if self.byte(0) == b'0' && matches!(self.byte(1), b'x' | b'X') {
            self.at += 2;
            let digits = self.skip_digits(16);
            return self.integer(start, digits, 16);
        }
        self.skip_digits(10);
        let mut double = false;
        if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
            double = true;
            self.at += 1;
            self.skip_digits(10);
        }
        let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
        if matches!(self.byte(0), b'e' | b'E') && self.byte(1 + sign).is_ascii_digit() {
            double = true;
            self.at += 1 + sign;
            self.skip_digits(10);
        }
        if !double {
            let digits = self.source[start..self.at].to_owned();
            return self.integer(start, digits, 10);
        }
        match self.source[start..self.at].parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(TokenKind::Double(value)),
            Ok(_) | Err(_) => self.error(start, "invalid double literal"),
        }
    }

    fn skip_digits(&mut self, radix: u32) -> String {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_digit(radix)).unwrap_or(rest.len());
        let digits = rest[..length].to_owned();
        self.at += length;
        digits
    }

    fn integer(&mut self, start: usize, digits: String, radix: u32) -> Result<TokenKind, LexError> {
        let unsigned = matches!(self.byte(0), b'u' | b'U');
        let value = u64::from_str_radix(&digits, radix);
        if unsigned {
            self.at += 1;
        }
        match value {
            Ok(value) if unsigned => Ok(TokenKind::Uint(value)),
            Ok(value) => Ok(TokenKind::Int(value)),
            Err(_) if unsigned => self.error(start, "invalid uint literal"),
            Err(_) => self.error(start, "invalid int literal"),
        }
    }
}
