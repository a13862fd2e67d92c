//! Links by their names: `"leaf0->spine1"`.

use std::borrow::Cow;
use std::fmt::{self, Formatter};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use shallows_model::LinkId;
use shallows_model::topology::{Fabric, Link, nearest};

/// Some links: `"leaf0->h3"`, `"leaf0<->spine1"` for both directions, `"*->h3"` with any text in
/// place of the star, `"all"`, or a list of such texts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct LinkNames(pub Vec<String>);

impl JsonSchema for LinkNames {
    fn schema_name() -> Cow<'static, str> {
        "LinkNames".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Links such as \"leaf0->h3\", \"leaf0<->spine1\", \"*->h3\" or \"all\", or a list of them",
            "type": ["string", "array"],
            "items": { "type": "string" },
        })
    }
}

impl LinkNames {
    /// The numbers of the links, from the lowest up, each once.
    pub fn find(&self, fabric: &Fabric) -> Result<Vec<LinkId>, String> {
        let mut links = Vec::new();
        for name in &self.0 {
            links.extend(find(fabric, name)?);
        }
        links.sort_unstable();
        links.dedup();
        Ok(links)
    }
}

/// The name of a link.
pub fn name(fabric: &Fabric, link: &Link) -> String {
    format!("{}->{}", fabric.name(link.from), fabric.name(link.to))
}

/// The links that a name stands for, at least one.
pub(super) fn find(fabric: &Fabric, wanted: &str) -> Result<Vec<LinkId>, String> {
    let (from, to, both) = match (wanted.split_once("<->"), wanted.split_once("->")) {
        _ if wanted == "all" => ("*", "*", false),
        (Some((from, to)), _) => (from, to, true),
        (None, Some((from, to))) => (from, to, false),
        (None, None) => {
            let first = name(fabric, fabric.link(LinkId(0)));
            return Err(format!(
                "{wanted:?} is not a link: write one such as {first:?}, \"*->h0\" or \"all\""
            ));
        }
    };
    let (from, to) = (from.trim(), to.trim());
    let fits = |link: &Link| {
        let [start, end] = [link.from, link.to].map(|node| fabric.name(node));
        matches(from, start) && matches(to, end) || both && matches(from, end) && matches(to, start)
    };
    let links = fabric.links().numbered();
    let found: Vec<LinkId> = links
        .filter(|(_, link)| fits(link))
        .map(|(number, _)| number)
        .collect();
    if found.is_empty() {
        return Err(unknown(fabric, wanted));
    }
    Ok(found)
}

fn unknown(fabric: &Fabric, wanted: &str) -> String {
    let names: Vec<String> = fabric
        .links()
        .iter()
        .map(|link| name(fabric, link))
        .collect();
    match nearest(&wanted.replace("<->", "->"), &names) {
        Some(nearest) => format!("there is no link {wanted:?}, did you mean {nearest:?}?"),
        None => format!("there is no link {wanted:?}; one is {:?}", names[0]),
    }
}

/// Returns whether a name is what a pattern says, in which a star is any text.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

impl<'de> Deserialize<'de> for LinkNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = LinkNames;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("a link such as \"leaf0->h3\", a list of them or \"all\"")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<LinkNames, E> {
                Ok(LinkNames(vec![name.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<LinkNames, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(LinkNames)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, name, expected) in [
            ("h3", "h3", true),
            ("h3", "h33", false),
            ("h*", "h33", true),
            ("*", "", true),
            ("*3", "h33", true),
            ("l*f*0", "leaf10", true),
            ("l*f*0", "leaf01", false),
            ("h3*3", "h3", false),
            ("**", "x", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
