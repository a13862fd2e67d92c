//! SONiC configurations from outside: findings, mistakes, real files.

mod check;
mod common;
mod fuzz;
mod real;
mod round_trip;
mod yang;
