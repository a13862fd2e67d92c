//! The operations in a build without libbpf: each says what is missing.

use std::convert::Infallible;

use crate::{Controller, Counters, Error, Parameters, Socket};

/// Whether controllers can be loaded.
pub fn check() -> Result<(), Error> {
    Err(Error::NoLibbpf)
}

/// Registers a controller with the kernel.
pub fn load(_: Controller, _: &Parameters) -> Result<(), Error> {
    Err(Error::NoLibbpf)
}

/// A controller that the kernel has for as long as this lives: here there is none.
#[derive(Debug)]
pub struct Held(Infallible);

/// Registers a controller with the kernel until the answer is dropped.
pub fn hold(_: Controller, _: &Parameters) -> Result<Held, Error> {
    Err(Error::NoLibbpf)
}

/// Removes a controller.
pub fn unload(_: Controller) -> Result<(), Error> {
    Err(Error::NoLibbpf)
}

/// Whether a controller is loaded.
pub fn is_loaded(_: Controller) -> Result<bool, Error> {
    Err(Error::NoLibbpf)
}

/// The parameters of a loaded controller.
pub fn parameters(_: Controller) -> Result<Parameters, Error> {
    Err(Error::NoLibbpf)
}

/// Changes the parameters of a loaded controller.
pub fn set_parameters(_: Controller, _: &Parameters) -> Result<(), Error> {
    Err(Error::NoLibbpf)
}

/// What a loaded controller has seen and done.
pub fn counters(_: Controller) -> Result<Counters, Error> {
    Err(Error::NoLibbpf)
}

/// The sockets that run a controller.
pub fn sockets() -> Result<Vec<Socket>, Error> {
    Err(Error::NoLibbpf)
}

pub(crate) mod qjump {
    //! QJUMP's limiter: here there is none.

    use crate::qjump::{Device, Error, Hook, Limits, Report, Status};

    /// Puts a limiter at the egress of a device.
    pub fn apply(_: &Device, limits: &Limits, _: Option<Hook>) -> Result<Report, Error> {
        limits.validate()?;
        Err(crate::Error::NoLibbpf.into())
    }

    /// The limiters of this machine.
    pub fn status() -> Result<Vec<Status>, Error> {
        Err(crate::Error::NoLibbpf.into())
    }

    /// Removes the limiter of a device.
    pub fn remove(_: &Device) -> Result<(), Error> {
        Err(crate::Error::NoLibbpf.into())
    }

    pub(crate) mod automatic {
        //! Levels that choose themselves: here there are none.

        use std::convert::Infallible;

        use shallows_core::units::Time;

        use crate::qjump::{Change, Device, Error};

        /// Chooses the levels of applications: here there is none.
        #[derive(Debug)]
        pub struct Chooser(Infallible);

        impl Chooser {
            /// Begins to choose levels.
            pub fn begin(_: &Device, _: Time) -> Result<Self, Error> {
                Err(crate::Error::NoLibbpf.into())
            }

            /// How long to wait between two steps.
            pub fn interval(&self) -> Time {
                match self.0 {}
            }

            /// Looks at what applications have sent.
            pub fn step(&mut self) -> Result<Vec<Change>, Error> {
                match self.0 {}
            }
        }
    }
}

pub(crate) mod mark {
    //! Marks by a cgroup: here there are none.

    use std::process::{Command, ExitStatus};

    use crate::mark::{Error, Mark};

    /// Runs a command whose sockets are marked.
    pub fn run(_: &Mark, _: &mut Command, _: impl FnOnce()) -> Result<ExitStatus, Error> {
        Err(crate::Error::NoLibbpf.into())
    }

    /// Runs a command in a cgroup of its own.
    pub fn run_apart(_: &mut Command, _: impl FnOnce()) -> Result<ExitStatus, Error> {
        Err(crate::Error::NoLibbpf.into())
    }
}
