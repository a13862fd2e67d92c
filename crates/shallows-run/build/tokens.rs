//! The tokens of Rust sources that reach the compiler in a build: no comments, no tests, no lints.

/// Attributes that change no code.
const WITHOUT_EFFECT: [&str; 6] = ["allow", "deny", "doc", "expect", "forbid", "warn"];

/// Tokens of the code in `text`, without comments, documentation, layout, lint attributes and items
/// under `#[cfg(test)]`. An item of a kind that this does not know stays.
pub(crate) fn code(text: &str) -> Vec<&str> {
    let all = split(text);
    let mut code = Vec::with_capacity(all.len());
    let mut at = 0;
    while at < all.len() {
        match attribute(&all[at..]) {
            Some((names, end)) if WITHOUT_EFFECT.contains(&names[0]) => at += end,
            Some((["cfg", "(", "test", ")"], end)) => {
                let item = end_of_item(&all, at + end);
                let next = item.unwrap_or(at + end);
                if item.is_none() {
                    code.extend_from_slice(&all[at..next]);
                }
                at = next;
            }
            _ => {
                code.push(all[at]);
                at += 1;
            }
        }
    }
    code
}

/// The tokens inside an attribute that `tokens` begin with, and the number of tokens that it takes.
fn attribute<'a, 't>(tokens: &'a [&'t str]) -> Option<(&'a [&'t str], usize)> {
    let open = match tokens {
        ["#", "[", ..] => 1,
        ["#", "!", "[", ..] => 2,
        _ => return None,
    };
    let end = closing(tokens, open)?;
    (end > open + 1).then(|| (&tokens[open + 1..end], end + 1))
}

/// The end of the item that begins at `at`, with more attributes in front of it.
fn end_of_item(tokens: &[&str], mut at: usize) -> Option<usize> {
    while let Some((_, length)) = attribute(tokens.get(at..)?) {
        at += length;
    }
    if *tokens.get(at)? == "pub" {
        at += 1;
        if *tokens.get(at)? == "(" {
            at = closing(tokens, at)? + 1;
        }
    }
    let is_statement = match *tokens.get(at)? {
        "use" | "static" | "type" | "let" => true,
        "const" => !["fn", "unsafe", "async", "extern"].contains(tokens.get(at + 1)?),
        "mod" | "fn" | "struct" | "enum" | "union" | "impl" | "trait" | "macro_rules"
        | "unsafe" | "async" | "extern" => false,
        _ => return None,
    };
    loop {
        match *tokens.get(at)? {
            ";" => return Some(at + 1),
            open @ ("{" | "(" | "[") => {
                at = closing(tokens, at)? + 1;
                if open == "{" && !is_statement {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
}

/// The bracket that closes the one at `open`.
pub(crate) fn closing(tokens: &[&str], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// All tokens but comments. Numbers and operators come in pieces, which makes no difference to a
/// hash.
fn split(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let (length, is_code) = match first(rest) {
            Piece::Space(length) => (length, false),
            Piece::Token(length) => (length, true),
        };
        if is_code {
            tokens.push(&rest[..length]);
        }
        at += length;
    }
    tokens
}

enum Piece {
    /// Spaces or a comment of this length.
    Space(usize),
    Token(usize),
}

/// The piece that a text begins with.
fn first(rest: &str) -> Piece {
    let initial = rest.chars().next().unwrap_or(' ');
    if initial.is_whitespace() {
        return Piece::Space(initial.len_utf8());
    }
    if rest.starts_with("//") {
        return Piece::Space(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Piece::Space(block_comment(rest));
    }
    Piece::Token(match initial {
        '"' => quoted(rest, 1, '"'),
        '\'' => quote(rest),
        _ if is_word(initial) => literal_with_prefix(rest).unwrap_or_else(|| word(rest)),
        _ => initial.len_utf8(),
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word(rest: &str) -> usize {
    rest.find(|c| !is_word(c)).unwrap_or(rest.len())
}

/// Comments of this kind contain each other.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(found) = rest[at..].find(['/', '*']) {
        at += found;
        match rest.as_bytes().get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The length of a literal whose text begins at `from` and ends with `end`.
fn quoted(rest: &str, from: usize, end: char) -> usize {
    let mut characters = rest[from..].char_indices();
    while let Some((at, c)) = characters.next() {
        if c == '\\' {
            characters.next();
        } else if c == end {
            return from + at + 1;
        }
    }
    rest.len()
}

/// A character, or a lifetime, which has no quote at its end.
fn quote(rest: &str) -> usize {
    let mut characters = rest[1..].chars();
    match (characters.next(), characters.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(rest, 1, '\''),
        _ => 1 + word(&rest[1..]),
    }
}

/// A literal such as `b"x"`, `b'x'` or `br#"x"#`.
fn literal_with_prefix(rest: &str) -> Option<usize> {
    let prefix = word(rest);
    let after = &rest[prefix..];
    match &rest[..prefix] {
        "b" | "c" if after.starts_with('"') => Some(quoted(rest, prefix + 1, '"')),
        "b" if after.starts_with('\'') => Some(quoted(rest, prefix + 1, '\'')),
        "r" | "br" | "cr" => {
            let hashes = after.len() - after.trim_start_matches('#').len();
            let inside = after[hashes..].strip_prefix('"')?;
            let end = format!("\"{}", "#".repeat(hashes));
            let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
            Some(prefix + hashes + 1 + length)
        }
        _ => None,
    }
}
