//! JSON to a tree and back. Written for this crate, because a tree with the place of each value is
//! needed, and no other reader keeps it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::FileError;
use super::tree::{DEEPEST, Data, Entry, Mark, Node};

/// Reads one value. Takes O(n), and as deep on the stack as lists and objects are nested, up to
/// [`DEEPEST`].
pub(super) fn parse(text: &str) -> Result<Node, FileError> {
    let mut reader = Reader {
        rest: text,
        mark: Mark { line: 1, column: 1 },
    };
    reader.skip_space();
    let node = reader.value(0)?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(node),
        Some(it) => Err(reader.wrong(format!("found {it:?} behind the end: remove it"))),
    }
}

struct Reader<'a> {
    rest: &'a str,
    mark: Mark,
}

impl Reader<'_> {
    fn wrong(&self, why: String) -> FileError {
        FileError::Form {
            path: String::new(),
            why,
            line: self.mark.line,
            column: self.mark.column,
        }
    }

    /// The error for the text in place of `expected`.
    fn lacks(&self, expected: &str) -> FileError {
        self.wrong(match self.peek() {
            Some(found) => format!("found {found:?}: give {expected}"),
            None => format!("the file ends here: give {expected}"),
        })
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut rest = self.rest.chars();
        let found = rest.next()?;
        self.rest = rest.as_str();
        if found == '\n' {
            self.mark.line += 1;
            self.mark.column = 1;
        } else {
            self.mark.column += 1;
        }
        Some(found)
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.next();
        }
        is_there
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.next();
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, FileError> {
        let mark = self.mark;
        let is_open = matches!(self.peek(), Some('{' | '['));
        if is_open && depth >= DEEPEST {
            return Err(self.wrong(format!(
                "lists and objects are nested more than {DEEPEST} deep: nest them less"
            )));
        }
        let data = match self.peek() {
            Some('{') => self.object(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Data::Word(self.string()?),
            Some('-' | '0'..='9') => Data::Number(self.number()?),
            Some('t' | 'f' | 'n') => self.literal()?,
            Some(_) | None => return Err(self.lacks("a value")),
        };
        Ok(Node { data, mark })
    }

    fn object(&mut self, depth: usize) -> Result<Data, FileError> {
        let mut entries = Vec::new();
        self.next();
        self.skip_space();
        if self.take('}') {
            return Ok(Data::Map(entries));
        }
        loop {
            self.skip_space();
            let mark = self.mark;
            if self.peek() != Some('"') {
                return Err(self.lacks("a key in quotes"));
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(':') {
                return Err(self.lacks("a colon"));
            }
            self.skip_space();
            let value = self.value(depth + 1)?;
            entries.push(Entry { key, mark, value });
            self.skip_space();
            if self.take('}') {
                entries.shrink_to_fit();
                return Ok(Data::Map(entries));
            }
            if !self.take(',') {
                return Err(self.lacks("a comma, or the end of the object"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Data, FileError> {
        let mut nodes = Vec::new();
        self.next();
        self.skip_space();
        if self.take(']') {
            return Ok(Data::List(nodes));
        }
        loop {
            self.skip_space();
            nodes.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take(']') {
                nodes.shrink_to_fit();
                return Ok(Data::List(nodes));
            }
            if !self.take(',') {
                return Err(self.lacks("a comma, or the end of the list"));
            }
        }
    }

    fn literal(&mut self) -> Result<Data, FileError> {
        for (word, data) in [
            ("true", Data::Bool(true)),
            ("false", Data::Bool(false)),
            ("null", Data::Null),
        ] {
            if self.rest.starts_with(word) {
                for _ in word.chars() {
                    self.next();
                }
                return Ok(data);
            }
        }
        Err(self.lacks("a value; words stand in quotes"))
    }

    fn number(&mut self) -> Result<String, FileError> {
        let mut text = String::new();
        let before = self.mark;
        if self.take('-') {
            text.push('-');
        }
        let is_zero = self.peek() == Some('0');
        let whole = self.digits(&mut text);
        if whole == 0 || is_zero && whole > 1 {
            self.mark = before;
            return Err(self.wrong("a number begins so: give digits, without a 0 in front".into()));
        }
        if self.take('.') {
            text.push('.');
            if self.digits(&mut text) == 0 {
                return Err(self.lacks("digits behind the point"));
            }
        }
        if let Some(found @ ('e' | 'E')) = self.peek() {
            self.next();
            text.push(found);
            if let Some(sign @ ('-' | '+')) = self.peek() {
                self.next();
                text.push(sign);
            }
            if self.digits(&mut text) == 0 {
                return Err(self.lacks("digits of the exponent"));
            }
        }
        Ok(text)
    }

    fn digits(&mut self, text: &mut String) -> usize {
        let mut count = 0;
        while let Some(digit @ '0'..='9') = self.peek() {
            self.next();
            text.push(digit);
            count += 1;
        }
        count
    }

    fn string(&mut self) -> Result<String, FileError> {
        let mut text = String::new();
        self.next();
        loop {
            match self.peek() {
                None => return Err(self.lacks("the quote that ends the word")),
                Some('"') => {
                    self.next();
                    return Ok(text);
                }
                Some('\\') => {
                    self.next();
                    text.push(self.escaped()?);
                }
                Some(found) if found < ' ' => {
                    return Err(self.wrong(format!(
                        "found {found:?} in a word: write it as \\u{:04x}",
                        u32::from(found)
                    )));
                }
                Some(found) => {
                    self.next();
                    text.push(found);
                }
            }
        }
    }

    fn escaped(&mut self) -> Result<char, FileError> {
        let found = self.peek();
        let plain = match found {
            Some(it @ ('"' | '\\' | '/')) => it,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                self.next();
                return self.unicode();
            }
            Some(_) | None => return Err(self.lacks("an escape: one of \\\" \\\\ \\/ b f n r t u")),
        };
        self.next();
        Ok(plain)
    }

    /// Behind `\u`: four digits, or twice as many for a pair of surrogates.
    fn unicode(&mut self) -> Result<char, FileError> {
        let first = self.hex()?;
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first).ok_or_else(|| self.lacks("a character"));
        }
        let is_pair = first < 0xdc00 && self.take('\\') && self.take('u');
        let second = if is_pair { self.hex()? } else { 0 };
        if !(0xdc00..0xe000).contains(&second) {
            return Err(self.wrong("half of a surrogate pair: give both halves".into()));
        }
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        char::from_u32(code).ok_or_else(|| self.lacks("a character"))
    }

    fn hex(&mut self) -> Result<u32, FileError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|it| it.to_digit(16));
            let digit = digit.ok_or_else(|| self.lacks("four hexadecimal digits"))?;
            self.next();
            code = code * 16 + digit;
        }
        Ok(code)
    }
}

/// Writes a value as text, two spaces for each level.
pub(super) fn print(node: &Node, indent: usize, out: &mut String) {
    match &node.data {
        Data::Null => out.push_str("null"),
        Data::Bool(it) => out.push_str(if *it { "true" } else { "false" }),
        Data::Number(text) => out.push_str(text),
        Data::Word(text) => quote(text, out),
        Data::List(nodes) if nodes.is_empty() => out.push_str("[]"),
        Data::Map(entries) if entries.is_empty() => out.push_str("{}"),
        Data::List(nodes) => {
            out.push('[');
            for (nth, node) in nodes.iter().enumerate() {
                new_line(nth, indent + 1, out);
                print(node, indent + 1, out);
            }
            new_line(0, indent, out);
            out.push(']');
        }
        Data::Map(entries) => {
            out.push('{');
            for (nth, entry) in entries.iter().enumerate() {
                new_line(nth, indent + 1, out);
                quote(&entry.key, out);
                out.push_str(": ");
                print(&entry.value, indent + 1, out);
            }
            new_line(0, indent, out);
            out.push('}');
        }
    }
}

fn new_line(nth: usize, indent: usize, out: &mut String) {
    out.push_str(if nth > 0 { ",\n" } else { "\n" });
    out.extend(core::iter::repeat_n("  ", indent));
}

/// Writes a word in quotes, as both formats read it: invisible characters, and line ends of YAML,
/// are escaped.
pub(super) fn quote(text: &str, out: &mut String) {
    out.push('"');
    for it in text.chars() {
        match it {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if it.is_control()
                || matches!(
                    it,
                    '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
                ) =>
            {
                out.push_str(&format!("\\u{:04x}", u32::from(it)));
            }
            _ => out.push(it),
        }
    }
    out.push('"');
}

/// Bytes as text.
pub(super) fn text(bytes: &[u8]) -> Result<&str, FileError> {
    let text = core::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = 1 + before.iter().filter(|it| **it == b'\n').count();
        let last = before.rsplit(|it| *it == b'\n').next().unwrap_or_default();
        let column = 1 + core::str::from_utf8(last).map_or(0, |it| it.chars().count());
        FileError::Form {
            path: String::new(),
            why: "a byte that is no UTF-8: save the file as UTF-8".into(),
            line,
            column,
        }
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        for (text, why) in [
            ("", "the file ends here: give a value, at line 1 column 1"),
            (
                "{\n \"a\" 1}",
                "found '1': give a colon, at line 2 column 6",
            ),
            ("[1,]", "found ']': give a value, at line 1 column 4"),
            ("[1 2]", "give a comma, or the end of the list"),
            ("[01]", "a number begins so"),
            ("[-]", "a number begins so"),
            ("[1.]", "give digits behind the point"),
            ("[1e]", "give digits of the exponent"),
            ("[tru]", "words stand in quotes"),
            ("\"a", "the quote that ends the word"),
            ("\"\n\"", "write it as \\u000a"),
            (r#""\x""#, "give an escape"),
            (r#""\ud800""#, "half of a surrogate pair"),
            (r#""\ud800\u0041""#, "half of a surrogate pair"),
            (r#""\udc00\udc00""#, "half of a surrogate pair"),
            (r#""\u12g4""#, "four hexadecimal digits"),
            ("{a: 1}", "give a key in quotes"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn escapes_are_read_and_written() {
        let node = parse(r#""\u00e4\ud83d\ude00\n\"\\\/\b\f\r\t""#).unwrap();
        let word = "\u{e4}\u{1f600}\n\"\\/\u{8}\u{c}\r\t";
        assert_eq!(node.data, Data::Word(word.into()));
        let mut out = String::new();
        print(&node, 0, &mut out);
        assert_eq!(parse(&out).unwrap().data, node.data, "{out}");
        for text in ["[]", "{}", "[\n  []\n]"] {
            let mut out = String::new();
            print(&parse(text).unwrap(), 0, &mut out);
            assert_eq!(out, text);
        }
    }
}
