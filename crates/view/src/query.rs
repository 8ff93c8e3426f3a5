//! The state of a gallery as the query of its URL: `start`, `sort`, `filter` (repeated), `q`.

use form_urlencoded::Serializer;

/// Filters of a query at most, and bytes of one.
const MAX_FILTERS: usize = 16;
const MAX_TEXT: usize = 1024;

/// Which records a gallery shows, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Query {
    /// Conditions, such as `image/width>=500`.
    pub(crate) filters: Vec<String>,
    /// Text that keys and text columns are searched for.
    pub(crate) search: String,
    /// Column to sort by; empty for the order of the shards.
    pub(crate) sort: String,
    pub(crate) descending: bool,
}

/// Returns the pairs of a query or a form, decoded.
pub(crate) fn pairs(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// Returns the last value of a name; empty values count as absent.
pub(crate) fn last<'p>(pairs: &'p [(String, String)], name: &str) -> Option<&'p str> {
    pairs.iter().rev().find(|(n, v)| n == name && !v.is_empty()).map(|(_, v)| v.as_str())
}

impl Query {
    /// Reads a query from decoded pairs. `sort=-COLUMN` is descending.
    pub(crate) fn of(pairs: &[(String, String)]) -> Self {
        let text = |name| last(pairs, name).unwrap_or_default().chars().take(MAX_TEXT).collect::<String>();
        let filters = pairs.iter().filter(|(name, value)| name == "filter" && !value.is_empty());
        let mut query = Query {
            filters: filters.take(MAX_FILTERS).map(|(_, v)| v.chars().take(MAX_TEXT).collect()).collect(),
            search: text("q"),
            ..Query::default()
        };
        let sort = text("sort");
        (query.sort, query.descending) = match sort.strip_prefix('-') {
            Some(column) => (column.to_owned(), true),
            None => (sort, last(pairs, "descending").is_some()),
        };
        query
    }

    /// Returns whether all records are shown in the order of the shards.
    pub(crate) fn is_all(&self) -> bool {
        *self == Query::default()
    }

    /// Returns the pairs of the URL.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs: Vec<_> = self.filters.iter().map(|filter| ("filter", filter.clone())).collect();
        if !self.search.is_empty() {
            pairs.push(("q", self.search.clone()));
        }
        if !self.sort.is_empty() {
            pairs.push(("sort", format!("{}{}", if self.descending { "-" } else { "" }, self.sort)));
        }
        pairs
    }

    /// Returns the URL of a page with this query and further pairs.
    pub(crate) fn url(&self, path: &str, more: &[(&str, String)]) -> String {
        let mut text = Serializer::new(String::new());
        for (name, value) in self.pairs() {
            text.append_pair(name, &value);
        }
        for (name, value) in more {
            text.append_pair(name, value);
        }
        match text.finish() {
            text if text.is_empty() => path.to_owned(),
            text => format!("{path}?{text}"),
        }
    }

    /// Returns this query with another filter, once.
    pub(crate) fn with_filter(&self, filter: String) -> Self {
        let mut query = self.clone();
        query.filters.retain(|f| *f != filter);
        query.filters.push(filter);
        query
    }

    /// Returns this query without the filters that begin so, such as `image/class/label=`.
    pub(crate) fn without_prefix(&self, prefix: &str) -> Self {
        let mut query = self.clone();
        query.filters.retain(|f| !f.starts_with(prefix));
        query
    }

    /// Returns this query without one of its filters.
    pub(crate) fn without_filter(&self, filter: &str) -> Self {
        let mut query = self.clone();
        query.filters.retain(|f| f != filter);
        query
    }
}

/// Encodes one segment of a path.
pub(crate) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_states_the_whole_query() {
        let query = Query {
            filters: vec!["image/width>=500".into(), "a&b=<x>".into()],
            search: "grün & blau".into(),
            sort: "image/height".into(),
            descending: true,
        };
        let url = query.url("/train", &[("start", "7".into())]);
        let parsed = pairs(url.split_once('?').unwrap().1);
        assert_eq!(Query::of(&parsed), query);
        assert_eq!(last(&parsed, "start"), Some("7"));
        assert_eq!(Query::default().url("/train", &[]), "/train");
    }

    #[test]
    fn a_query_is_bounded() {
        let many: String = (0..100).map(|i| format!("filter=a{i}={}&", "x".repeat(5000))).collect();
        let query = Query::of(&pairs(&many));
        assert_eq!((query.filters.len(), query.filters[0].len()), (MAX_FILTERS, MAX_TEXT));
    }

    #[test]
    fn a_segment_of_a_path_is_encoded() {
        assert_eq!(segment("a b/é?"), "a%20b%2F%C3%A9%3F");
    }
}
