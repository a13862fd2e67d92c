//! The server of every application: answers what is asked, at once.

use super::{Action, Application, Message, Outbox, Sample};
use crate::units::Time;

#[derive(Debug, Default)]
pub(super) struct Responder {
    desk: Outbox,
}

impl Application for Responder {
    fn poll(&mut self, _: Time) -> Action {
        self.desk.outbox.pop_front().unwrap_or(Action::Idle)
    }

    fn delivered(&mut self, _: Time, connection: u32, message: Message) {
        self.desk.answer(connection, message);
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        self.desk.take_samples()
    }
}
