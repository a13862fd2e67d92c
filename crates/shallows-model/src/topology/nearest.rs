/// The one of `known` that `wanted` is most likely a misspelling of, if any is close.
///
/// Close means that at most a third of its letters, rounded up, must be changed, added or left out. The earliest of equally close names wins.
pub fn nearest<'a>(
    wanted: &str,
    known: impl IntoIterator<Item = &'a (impl AsRef<str> + ?Sized + 'a)>,
) -> Option<&'a str> {
    let wanted: Vec<char> = wanted.chars().take(LONGEST).collect();
    let close = wanted.len().div_ceil(3);
    known
        .into_iter()
        .map(|name| (edit_distance(&wanted, name.as_ref()), name.as_ref()))
        .filter(|&(distance, _)| distance <= close)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// Longer names are compared by their beginning, so that hostile input costs little.
const LONGEST: usize = 64;

/// Levenshtein's distance, by rows.
fn edit_distance(a: &[char], b: &str) -> usize {
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (i, letter) in b.chars().take(LONGEST).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &other) in a.iter().enumerate() {
            let change = diagonal + usize::from(letter != other);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[a.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_textbook_words() {
        let distance = |a: &str, b| edit_distance(&a.chars().collect::<Vec<_>>(), b);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("leaf3", "leaf3"), 0);
    }

    #[test]
    fn suggests_close_names_only() {
        let known = ["h0", "h1", "leaf0", "spine0"];
        assert_eq!(nearest("laef0", known), Some("leaf0"));
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest("leaf_0", known), Some("leaf0"));
        assert_eq!(nearest("spin0", known), Some("spine0"));
        assert_eq!(nearest("h9", known), Some("h0"));
        assert_eq!(nearest("router", known), None);
    }
}
