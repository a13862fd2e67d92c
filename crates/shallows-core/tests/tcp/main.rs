//! TCP sender and receiver over a link in virtual time, as a simulator would drive them.

mod controllers;
mod driver;
mod model;
mod recovery;
mod startup;
