//! Switch and host configurations: read, checked, imported into scenarios and exported from them.
//!
//! [`sonic`] knows the queueing tables of SONiC's `config_db.json`, [`linux`] the words of `tc`,
//! `sysctl` and `ip route`, and [`traffic`] captures and flow records. Everything works on bytes and
//! values; the caller reads and writes files.
//!
//! ```
//! use shallows_operate::sonic::{Context, ConfigDb, check};
//!
//! let db = ConfigDb::parse("config_db.json", r#"{
//!     "PORT": { "Ethernet0": { "speed": "25000" } },
//!     "WRED_PROFILE": { "DEEP": { "ecn": "ecn_all", "green_min_threshold": "1048576",
//!         "green_max_threshold": "2097152", "green_drop_probability": "5" } },
//!     "QUEUE": { "Ethernet0|3": { "wred_profile": "DEEP" } }
//! }"#)?;
//! let findings = check(&db, &Context::default());
//! assert!(findings.iter().any(|finding| finding.says.contains("wred_green_enable is missing")));
//! # Ok::<(), shallows_operate::sonic::ReadError>(())
//! ```

#![forbid(unsafe_code)]

pub mod linux;
pub mod sonic;
pub mod traffic;
