//! A scan over JSON that looks only at strings, brackets and an object's own keys: where a value
//! ends, and what an object says that it is. What the values are is left to `json`.

use std::ops::Range;

/// How deep values may be nested.
pub(super) const DEPTH: usize = 128;

/// What a scan over an object's own keys finds.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// Behind the closing brace.
    pub(super) end: usize,
    /// The value of `apiVersion`.
    pub(super) api_version: Option<Range<usize>>,
    /// The value of `kind`.
    pub(super) kind: Option<Range<usize>>,
    /// Where the list under `items` begins.
    pub(super) items: Option<usize>,
    /// Whether `items` is null, as an empty list may be written.
    pub(super) no_items: bool,
    /// The value of `type`, which the event of a watch has.
    pub(super) event: Option<Range<usize>>,
    /// Where the object under `object` begins.
    pub(super) object: Option<usize>,
    /// `apiVersion` or `kind` where it is said again, and that value.
    pub(super) again: Option<(&'static str, usize)>,
}

impl Outline {
    /// Notes where the value of a key begins.
    fn begin(&mut self, key: &[u8], at: usize, first: Option<u8>) {
        let items = key == b"\"items\"";
        if items && first == Some(b'[') {
            self.items = Some(at);
        }
        self.no_items |= items && first == Some(b'n');
        if key == b"\"object\"" && first == Some(b'{') {
            self.object = Some(at);
        }
    }

    /// Notes the value of a key.
    fn note(&mut self, key: &[u8], value: Range<usize>) {
        let (name, field) = match key {
            b"\"apiVersion\"" => ("apiVersion", &mut self.api_version),
            b"\"kind\"" => ("kind", &mut self.kind),
            b"\"type\"" => {
                self.event = Some(value);
                return;
            }
            _ => return,
        };
        if field.is_some() {
            self.again.get_or_insert((name, value.start));
        }
        *field = Some(value);
    }
}

/// What an object says that it is before it says anything else.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head<'a> {
    pub(super) api_version: Option<&'a str>,
    pub(super) kind: Option<&'a str>,
}

/// Why a scan ended early.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broken {
    pub(super) at: usize,
    pub(super) why: &'static str,
}

/// A place in the text that goes on forward.
#[derive(Clone, Copy)]
pub(super) struct Scan<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at).copied() {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    fn broken(&self, why: &'static str) -> Broken {
        Broken { at: self.at, why }
    }

    /// Skips a string; the scan stands at its first quote.
    fn string(&mut self) -> Result<(), Broken> {
        let start = self.at;
        self.at += 1;
        while let Some(rest) = self.bytes.get(self.at..) {
            let special = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n'));
            match special.map(|step| (step, rest.get(step))) {
                Some((step, Some(b'"'))) => {
                    self.at += step + 1;
                    return Ok(());
                }
                // An escape does not carry a string over the end of its line either.
                Some((step, Some(b'\\'))) if rest.get(step + 1) != Some(&b'\n') => {
                    self.at += step + 2;
                }
                Some(_) | None => break,
            }
        }
        Err(Broken { at: start, why: "a string begins here and does not end on its line" })
    }

    /// Skips any value, looking only at strings and brackets.
    pub(super) fn value(&mut self) -> Result<(), Broken> {
        let Some(first) = self.peek() else {
            return Err(self.broken("the text ends where a value is expected"));
        };
        match first {
            b'"' => self.string(),
            b'{' | b'[' => self.brackets(),
            b',' | b':' | b'}' | b']' => Err(self.broken("a value is expected here")),
            _ => {
                let rest = self.bytes.get(self.at..).unwrap_or_default();
                let ends = |byte: &u8| {
                    matches!(byte, b',' | b'}' | b']' | b':') || byte.is_ascii_whitespace()
                };
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
                Ok(())
            }
        }
    }

    /// Skips a list or an object by its brackets; the scan stands at the first.
    fn brackets(&mut self) -> Result<(), Broken> {
        let start = self.at;
        // One bit a level: whether it is an object.
        let (mut kinds, mut depth) = (0_u128, 0_usize);
        while let Some(byte) = self.bytes.get(self.at).copied() {
            match byte {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => {
                    if depth == DEPTH {
                        return Err(self.broken("values are nested more than 128 deep"));
                    }
                    kinds = kinds << 1 | u128::from(byte == b'{');
                    depth += 1;
                }
                b'}' | b']' => {
                    if (kinds & 1 == 1) != (byte == b'}') {
                        return Err(self.broken("this bracket closes what another kind opened"));
                    }
                    kinds >>= 1;
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Ok(());
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        Err(Broken { at: start, why: "a bracket opens here and is not closed" })
    }

    /// Goes over the next key of the object that begins at `start`, and over its colon, to the value;
    /// none behind the closing brace. The scan stands at the opening brace or behind a value.
    fn key(&mut self, start: usize) -> Result<Option<&'a [u8]>, Broken> {
        let endless = Broken { at: start, why: "an object begins here and does not end" };
        let opens = self.at == start;
        self.at += usize::from(opens);
        match self.peek().ok_or(endless)? {
            b'}' => {
                self.at += 1;
                return Ok(None);
            }
            b',' if !opens => self.at += 1,
            _ if !opens => {
                return Err(self.broken("a comma or a closing brace is expected here"));
            }
            _ => {}
        }
        if self.peek().ok_or(endless)? != b'"' {
            return Err(self.broken("a key in quotes is expected here"));
        }
        let key = self.at;
        self.string()?;
        let key = self.bytes.get(key..self.at).unwrap_or_default();
        if self.peek() != Some(b':') {
            return Err(self.broken("a colon is expected here"));
        }
        self.at += 1;
        self.peek();
        Ok(Some(key))
    }

    /// Goes over the keys of the object that begins at `start`: all from its brace on, or those
    /// behind a value. What is found before an error is kept in `outline`.
    pub(super) fn outline(&mut self, start: usize, outline: &mut Outline) -> Result<(), Broken> {
        while let Some(key) = self.key(start)? {
            let at = self.at;
            outline.begin(key, at, self.peek());
            self.value()?;
            outline.note(key, at..self.at);
        }
        outline.end = self.at;
        Ok(())
    }

    /// Goes over the keys of an object up to a list under `items`; gives where that begins.
    pub(super) fn until_items(&mut self, outline: &mut Outline) -> Result<Option<usize>, Broken> {
        let start = self.at;
        while let Some(key) = self.key(start)? {
            let at = self.at;
            outline.begin(key, at, self.peek());
            if outline.items.is_some() {
                return Ok(outline.items);
            }
            self.value()?;
            outline.note(key, at..self.at);
        }
        Ok(None)
    }

    /// What an object says that it is, as far as that comes first and without escapes; none where
    /// the text breaks off. The scan stands at the brace.
    pub(super) fn head(mut self) -> Option<Head<'a>> {
        let start = self.at;
        let mut head = Head::default();
        while let Some(key) = self.key(start).ok()? {
            let field = match key {
                b"\"apiVersion\"" => &mut head.api_version,
                b"\"kind\"" => &mut head.kind,
                _ => break,
            };
            if field.is_some() || self.peek() != Some(b'"') {
                return None;
            }
            let at = self.at + 1;
            self.string().ok()?;
            let text = self.bytes.get(at..self.at.saturating_sub(1))?;
            *field = Some(std::str::from_utf8(text).ok().filter(|text| !text.contains('\\'))?);
        }
        Some(head)
    }
}

impl Head<'_> {
    /// How many fields of it are said.
    pub(super) fn fields(&self) -> usize {
        usize::from(self.api_version.is_some()) + usize::from(self.kind.is_some())
    }
}
