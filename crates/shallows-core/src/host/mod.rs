//! What a host does to its own packets before they reach the network: how much it may send
//! ([`qjump`]), how it tags what it sends ([`stage`]), and traffic that nothing holds back
//! ([`udp`]).

pub mod qjump;
pub mod stage;
pub mod udp;
