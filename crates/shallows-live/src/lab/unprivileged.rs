//! Threads and programs without root.

#![allow(unsafe_code)]

use std::env;

use nix::unistd::{Gid, Uid, User};

use super::LabError;

/// User for everything at the hosts that need not be root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unprivileged {
    user: Uid,
    group: Gid,
}

/// The number of the user who runs this program: with sudo, the one who called it.
pub fn calling_user() -> u32 {
    let caller = number("SUDO_UID").filter(|_| nix::unistd::geteuid().is_root());
    caller.unwrap_or_else(|| nix::unistd::getuid().as_raw())
}

/// A number that sudo leaves in the environment.
fn number(name: &str) -> Option<u32> {
    env::var(name).ok()?.parse().ok()
}

impl Unprivileged {
    /// The user who called sudo, or nobody.
    pub(crate) fn find() -> Self {
        if let (Some(user @ 1..), Some(group)) = (number("SUDO_UID"), number("SUDO_GID")) {
            return Self {
                user: user.into(),
                group: group.into(),
            };
        }
        let nobody = User::from_name("nobody").ok().flatten();
        nobody.map_or(
            Self {
                user: 65534.into(),
                group: 65534.into(),
            },
            |nobody| Self {
                user: nobody.uid,
                group: nobody.gid,
            },
        )
    }

    /// Command line prefix that runs a command as this user, for good.
    pub(crate) fn wrapper(self) -> Vec<String> {
        let Self { user, group } = self;
        vec![
            "setpriv".to_owned(),
            format!("--reuid={user}"),
            format!("--regid={group}"),
            "--clear-groups".to_owned(),
            "--no-new-privs".to_owned(),
        ]
    }

    /// Makes the calling thread, and the threads that it starts, this user's. Other threads stay
    /// what they are, and share its memory: this limits what a mistake can do to the machine, and is
    /// no wall against an attacker.
    pub(crate) fn become_on_this_thread(self) -> Result<(), LabError> {
        let (user, group) = (self.user.as_raw(), self.group.as_raw());
        // SAFETY: plain numbers and no list. The C library's functions would change all threads.
        let done = unsafe {
            libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) == 0
                && libc::syscall(libc::SYS_setresgid, group, group, group) == 0
                && libc::syscall(libc::SYS_setresuid, user, user, user) == 0
        };
        if done {
            return Ok(());
        }
        Err(LabError::File {
            what: format!("becoming user {user}"),
            error: std::io::Error::last_os_error(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn one_thread_gives_up_root_and_the_others_keep_it() {
        if !nix::unistd::geteuid().is_root() {
            shallows_testing::skip!("it needs root");
        }
        let ids = || {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("Uid:"));
            line.unwrap().to_owned()
        };
        let expected = Unprivileged::find();
        let inside = std::thread::spawn(move || {
            expected.become_on_this_thread().unwrap();
            (ids(), std::thread::spawn(ids).join().unwrap())
        });
        let (own, child) = inside.join().unwrap();
        let user = expected.user;
        assert_eq!(own, format!("Uid:\t{user}\t{user}\t{user}\t{user}"));
        assert_eq!(child, own);
        assert_eq!(ids(), "Uid:\t0\t0\t0\t0");
    }
}
