//! Errors that say which key of a configuration they are about.

use std::borrow::Cow;
use std::fmt::Display;

/// An error in a configuration.
pub trait Keyed: Display {
    /// The keys that it is about, as they are written in a file, the likeliest to be wrong first:
    /// names within the table that was read or tables in it, or paths such as `rto.initial`. Those
    /// that have defaults need not be in the file. None if the table as a whole is wrong, or
    /// something beside it.
    fn keys(&self) -> Vec<Cow<'_, str>>;
}
