//! What a host does to its own packets before they reach the network: what may hold them back
//! ([`gate`]), how much it may send ([`qjump`]), how it tags what it sends ([`stage`]), and traffic
//! that nothing holds back ([`udp`]).

pub mod gate;
pub mod qjump;
pub mod stage;
pub mod udp;
