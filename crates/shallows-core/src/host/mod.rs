//! What a host does to its own packets before they reach the network: how much it may send
//! ([`qjump`]) and how it tags what it sends ([`stage`]).

pub mod qjump;
pub mod stage;
