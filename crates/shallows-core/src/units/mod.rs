//! Times, rates and sizes as exact integers, written the way scenario files write them.
//!
//! Every unit parses from and prints to text such as `"10Gbps"`, and printing never loses a digit:
//! parsing what was printed gives the same value.
//!
//! ```
//! use shallows_core::units::{Bytes, Rate, Time};
//!
//! let link: Rate = "10Gbps".parse()?;
//! let packet: Bytes = "1500B".parse()?;
//! assert_eq!(link.transmission_time(packet), Time::from_ns(1200));
//! assert_eq!(link.transmission_time(packet).to_string(), "1.2us");
//! # Ok::<(), shallows_core::units::UnitError>(())
//! ```

mod bytes;
mod clock;
mod length;
mod ops;
mod parse;
mod rate;
mod text;
mod time;

#[cfg(test)]
mod tests;

pub use bytes::Bytes;
pub use clock::TransmissionClock;
pub use length::{Length, Packets};
pub use parse::UnitError;
pub use rate::Rate;
pub use time::Time;
