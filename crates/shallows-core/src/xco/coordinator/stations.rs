//! The virtual machines of the host, and where those of others are.

use rustc_hash::FxHashMap;

use super::Coordinator;
use crate::packet::Packet;
use crate::xco::message::{Claims, MOST_CLAIMS, Places, Station};

/// The most stations that a host remembers: far more than a table of all hosts has in practice, and
/// a bound on what a leader, or a guest that makes up addresses, can make it store.
const MOST_KNOWN: usize = 1 << 20;

/// Stations that have sent from here, and the places of all that the leader knows.
#[derive(Debug, Default)]
pub(super) struct Stations {
    places: FxHashMap<Station, u32>,
    /// Stations that have sent from here while the leader had them elsewhere, oldest first.
    unconfirmed: Vec<Station>,
    /// The version of the leader's table that `places` has.
    seen: u64,
}

/// The most stations that wait to be confirmed: what a flood of made-up addresses can occupy.
const MOST_UNCONFIRMED: usize = 1024;

impl Stations {
    /// A frame of this station has come from a virtual machine of `host`; whether that is news.
    fn note(&mut self, station: Station, host: u32) -> bool {
        if self.places.get(&station) == Some(&host) || self.unconfirmed.contains(&station) {
            return false;
        }
        if self.unconfirmed.len() >= MOST_UNCONFIRMED {
            self.unconfirmed.remove(0);
        }
        self.unconfirmed.push(station);
        true
    }

    /// Takes what the leader has told; whether there was anything.
    fn take(&mut self, news: &Places) -> bool {
        if news.version <= self.seen {
            return false;
        }
        self.seen = news.version;
        for &(station, place) in &news.places {
            self.unconfirmed.retain(|&other| other != station);
            if self.places.len() < MOST_KNOWN || self.places.contains_key(&station) {
                self.places.insert(station, place);
            }
        }
        true
    }

    /// Goes on with a leader that knows nothing yet. What was true stays so until it says otherwise.
    fn restart(&mut self, host: u32) {
        self.seen = 0;
        let own = self.places.iter().filter(|&(_, place)| *place == host);
        let mut own: Vec<Station> = own.map(|(&station, _)| station).collect();
        own.sort_unstable();
        for station in &own {
            self.places.remove(station);
        }
        own.extend(&self.unconfirmed);
        own.truncate(MOST_UNCONFIRMED);
        self.unconfirmed = own;
    }

    fn claims(&self) -> Claims {
        let stations = self.unconfirmed.iter().take(MOST_CLAIMS);
        Claims {
            seen: self.seen,
            stations: stations.copied().collect(),
        }
    }
}

impl<P: Packet> Coordinator<P> {
    /// Has it learn where virtual machines are, and tell the controller of its own.
    #[must_use]
    pub fn with_places(mut self) -> Self {
        self.stations = Some(Stations::default());
        self
    }

    /// Notes the source of a frame from a virtual machine of this host. Answers whether that is to
    /// be reported at once, which it is if no report is under way: made-up addresses do not make a
    /// report each.
    #[inline]
    pub fn note_station(&mut self, station: Station) -> bool {
        let host = self.config.host;
        let stations = self.stations.as_mut();
        let is_news = stations.is_some_and(|stations| stations.note(station, host));
        let is_due = is_news && self.reporting.unacknowledged.is_none();
        self.reporting.is_due |= is_due;
        is_due
    }

    /// The host that a virtual machine is at, as far as it was learned.
    #[inline]
    pub fn place(&self, station: Station) -> Option<u32> {
        let stations = self.stations.as_ref()?;
        stations.places.get(&station).copied()
    }

    /// The stations whose places are known.
    pub fn known_stations(&self) -> usize {
        let stations = self.stations.as_ref();
        stations.map_or(0, |stations| stations.places.len())
    }

    pub(super) fn take_places(&mut self, news: &Places) {
        let stations = self.stations.as_mut();
        // A report shows the leader that they have arrived, and it sends what is left.
        if stations.is_some_and(|stations| stations.take(news)) {
            self.reporting.is_due = true;
        }
    }

    pub(super) fn restart_places(&mut self) {
        if let Some(stations) = &mut self.stations {
            stations.restart(self.config.host);
        }
    }

    pub(super) fn claims(&self) -> Option<Claims> {
        self.stations.as_ref().map(Stations::claims)
    }
}
