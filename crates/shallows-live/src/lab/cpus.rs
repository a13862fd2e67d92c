use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::LabError;

/// CPUs of the switch and of the hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// The switch's own, if there are enough.
    pub switch: Option<usize>,
    /// The hosts'.
    pub hosts: Vec<usize>,
}

impl Cpus {
    /// The last CPU that this program may use for the switch and the others for the hosts; all for
    /// all if there is one only.
    pub fn split() -> Result<Self, LabError> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).map_err(failed)?;
        let mut hosts: Vec<usize> = (0..CpuSet::count())
            .filter(|&cpu| allowed.is_set(cpu).unwrap_or(false))
            .collect();
        let switch = if hosts.len() > 1 { hosts.pop() } else { None };
        Ok(Self { switch, hosts })
    }

    /// Keeps the calling thread, and the threads and programs that it starts, to the hosts' CPUs.
    pub fn pin_to_hosts(&self) -> Result<(), LabError> {
        let mut set = CpuSet::new();
        for &cpu in &self.hosts {
            set.set(cpu).map_err(failed)?;
        }
        sched_setaffinity(Pid::from_raw(0), &set).map_err(failed)
    }

    /// The hosts' CPUs as the kernel writes sets: hexadecimal words of 32, the highest first.
    pub(super) fn host_mask(&self) -> String {
        let last = self.hosts.iter().max().copied().unwrap_or_default();
        let mut words = vec![0u32; last / 32 + 1];
        for cpu in &self.hosts {
            words[cpu / 32] |= 1 << (cpu % 32);
        }
        let words: Vec<String> = words.iter().rev().map(|word| format!("{word:x}")).collect();
        words.join(",")
    }
}

fn failed(error: nix::Error) -> LabError {
    LabError::File {
        what: "choosing CPUs".to_owned(),
        error: error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_written_as_the_kernel_writes_them() {
        let mask = |hosts: &[usize]| {
            let hosts = hosts.to_vec();
            Cpus {
                switch: None,
                hosts,
            }
            .host_mask()
        };
        assert_eq!(mask(&[0]), "1");
        assert_eq!(mask(&[0, 2, 3]), "d");
        assert_eq!(mask(&[1, 32, 64]), "1,1,2");
    }
}
