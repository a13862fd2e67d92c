//! Host mechanisms between transport and network: gates that hold packets back ([`gate`]), rate
//! limits ([`qjump`]), stage tags ([`stage`]), and traffic without congestion control ([`udp`]).

pub mod gate;
pub mod qjump;
pub mod stage;
pub mod udp;
