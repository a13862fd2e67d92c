//! The messages between controllers and coordinators.
//!
//! All numbers are little-endian. Every message is
//!
//! | bytes | field |
//! |---|---|
//! | 1 | version, [`VERSION`] |
//! | 1 | kind: 1 report, 2 directive, 3 beat |
//! | 4 | sender |
//! | 4 | addressee |
//! | 8 | incarnation of the sender: larger after each restart |
//! | 8 | sequence number, larger in each message of the sender |
//! | | the body, see [`Report`], [`Directive`] and [`Beat`] |
//! | 16 | tag: SipHash-2-4 with 128 bits of output over all before |
//!
//! SipHash is a keyed hash made for authenticating short messages: a tag costs about a hundred
//! nanoseconds, a tenth of HMAC-SHA-256, where the controller has some microseconds for an event.
//! Each host has a key of its own, derived from the cluster's, so that one host cannot speak for
//! another or for a controller; see [`ClusterKey`].
//!
//! Newer state replaces older state in this protocol. A receiver therefore accepts only numbers
//! above the last one of the sender, which also refuses replays; a message that was overtaken is
//! refused with them, and its content comes again in a later one.

mod wire;

use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;

use crate::units::{Rate, Time};
use wire::Reader;

/// The version of the format.
pub const VERSION: u8 = 1;
/// The most destinations of a [`Report`] and the most permits of a [`Directive`]: both fit into an
/// Ethernet frame.
pub const MOST_DESTINATIONS: usize = 256;
/// See [`MOST_DESTINATIONS`].
pub const MOST_PERMITS: usize = 64;
/// The most rates of a [`Report`].
pub const MOST_RATES: usize = 24;
/// The most destinations of [`Held::Only`], which takes the room of permits.
pub const MOST_HELD: usize = 256;

/// The most stations of [`Claims`].
pub const MOST_CLAIMS: usize = 8;
/// The most entries of [`Places`], which take the room of permits.
pub const MOST_PLACES: usize = 64;

/// Bytes of a permit.
const PERMIT: usize = 21;
/// Bytes of [`Places`] without any entry, and of an entry.
const PLACES: usize = 10;
const PLACE: usize = 10;

const HEADER: usize = 26;
const TAG: usize = 16;

/// The secret that controllers share.
#[derive(Clone)]
pub struct ClusterKey([u64; 2]);

/// A key shared by one host and the controllers, or by the controllers.
#[derive(Clone)]
pub struct Key([u64; 2]);

impl std::fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClusterKey(..)")
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl ClusterKey {
    /// A key of 128 bits, which must be random and secret.
    pub fn new(key: [u8; 16]) -> Self {
        Self(halves(u128::from_le_bytes(key)))
    }

    /// The key of a host.
    pub fn host(&self, host: u32) -> Key {
        self.derive(b"xco host", &host.to_le_bytes())
    }

    /// The key of a host that is known by its name, wherever it is in a list.
    pub fn named_host(&self, name: &str) -> Key {
        self.derive(b"xco name", name.as_bytes())
    }

    /// The key of the cluster that a pod is in a hierarchy.
    #[must_use]
    pub fn named_pod(&self, name: &str) -> Self {
        Self(self.derive(b"xco  pod", name.as_bytes()).0)
    }

    /// The key itself, to be stored where nobody else can read it.
    pub fn bytes(&self) -> [u8; 16] {
        Key(self.0).bytes()
    }

    /// The key of messages between controllers.
    pub fn controllers(&self) -> Key {
        self.derive(b"xco ctrl", &0_u32.to_le_bytes())
    }

    fn derive(&self, purpose: &[u8], of: &[u8]) -> Key {
        let mut hasher = SipHasher24::new_with_keys(self.0[0], self.0[1]);
        hasher.write(purpose);
        hasher.write(of);
        Key(halves(hasher.finish128().as_u128()))
    }
}

impl Key {
    /// A key as [`bytes`](Self::bytes) gave it away, for a host that must not know the cluster's.
    pub fn new(key: [u8; 16]) -> Self {
        Self(halves(u128::from_le_bytes(key)))
    }

    /// The key itself, to be stored where nobody else can read it.
    pub fn bytes(&self) -> [u8; 16] {
        (u128::from(self.0[1]) << 64 | u128::from(self.0[0])).to_le_bytes()
    }

    fn tag(&self, bytes: &[u8]) -> u128 {
        let hasher = SipHasher24::new_with_keys(self.0[0], self.0[1]);
        hasher.hash(bytes).as_u128()
    }
}

fn halves(key: u128) -> [u64; 2] {
    [key as u64, (key >> 64) as u64]
}

/// A term of leadership. A controller that takes over uses a larger one; the leader's number
/// decides between two that chose the same counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch {
    /// Counts the terms.
    pub counter: u32,
    /// The controller that leads in it.
    pub leader: u32,
}

/// Source, destination and sequence of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The sender's address.
    pub from: u32,
    /// The addressee's.
    pub to: u32,
    /// Start of the sender, by its own count.
    pub incarnation: u64,
    /// The number of the message.
    pub sequence: u64,
}

/// A message without its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A host to a controller.
    Report(Report),
    /// A controller to a host.
    Directive(Directive),
    /// A controller to another.
    Beat(Beat),
}

/// A host's report: its presence, its whole backlog group and the outcome of its slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// State of the host.
    pub standing: Standing,
    /// True if the controller is to answer even if it has nothing to say.
    pub wants_answer: bool,
    /// True if the slot of `grant` is still in use.
    pub is_sending: bool,
    /// The epoch that the host follows.
    pub epoch: Epoch,
    /// The incarnation of the leader, 0 without one, and the stamp of its newest directive: proof
    /// that the host followed it then. The stamp is zero if the host cannot vouch for that.
    pub echo: (u64, Time),
    /// The host's clock.
    pub clock: Time,
    /// Number of times that this clock has gone back: times of another timeline mean nothing.
    pub timeline: u32,
    /// The number of the newest grant that it received.
    pub grant: u64,
    /// B_x, longest backlogged first.
    pub backlog: Vec<u32>,
    /// Rates to large destinations; measured only if coordination is on demand.
    pub rates: Vec<(u32, Rate)>,
    /// Virtual machines of the host, where places are learned.
    pub claims: Option<Claims>,
}

/// The Ethernet address of a virtual machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Station(pub [u8; 6]);

/// Virtual machines that a host has seen behind it, which the leader may not know to be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// The version of the leader's table up to which the host knows it.
    pub seen: u64,
    /// Stations; those that do not fit are claimed in later reports.
    pub stations: Vec<Station>,
}

/// The leader's table of virtual machines, from where the host knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The version up to which the host knows the table with these.
    pub version: u64,
    /// Stations and the hosts that they are at.
    pub places: Vec<(Station, u32)>,
}

impl Report {
    /// Returns whether it proves that its host followed this incarnation of the leader.
    pub(super) fn vouches_for(&self, incarnation: u64) -> bool {
        self.echo.0 == incarnation && self.echo.1 > Time::ZERO
    }
}

/// A host's participation in the coordination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It does what directives say.
    #[default]
    Coordinated,
    /// It sends without permission, for lack of a controller.
    Uncoordinated,
    /// It is about to leave.
    Leaving,
}

/// A controller's directive to a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directive {
    /// The controller's epoch.
    pub epoch: Epoch,
    /// The incarnation of the host that it is for; 0 asks any to report.
    pub incarnation: u64,
    /// True if the controller gives permits at present. One that has just been elected does not
    /// yet.
    pub is_granting: bool,
    /// The controller's clock.
    pub stamp: Time,
    /// The newest report that it has seen.
    pub acknowledged: u64,
    /// The timeline of the host's clock that `until` of permits is in.
    pub timeline: u32,
    /// The number of this grant, larger for each; 0 if it permits nothing new.
    pub grant: u64,
    /// Destinations that need permission.
    pub held: Held,
    /// Permits granted.
    pub permits: Vec<Permit>,
    /// Changed places of virtual machines.
    pub places: Option<Places>,
}

/// Destinations that a host may send to only with a permit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// All of them.
    #[default]
    All,
    /// These, while coordination is on demand.
    Only(Vec<u32>),
}

impl Directive {
    /// Number of further permits that fit into a message.
    pub(super) fn room(&self) -> usize {
        let taken = match &self.held {
            Held::All => 0,
            Held::Only(destinations) => (4 * destinations.len()).div_ceil(PERMIT),
        };
        MOST_PERMITS.saturating_sub(self.permits.len() + taken)
    }

    /// Number of places that fit into a message.
    pub(super) fn room_for_places(&self) -> usize {
        let room = (PERMIT * self.room()).saturating_sub(PLACES);
        (room / PLACE).min(MOST_PLACES)
    }
}

impl Held {
    /// These destinations, or all where a message has no room for so many beside `permits`.
    pub(super) fn beside(permits: usize, destinations: Vec<u32>) -> Self {
        let room = MOST_PERMITS.saturating_sub(permits) * PERMIT / 4;
        if destinations.len() > room.min(MOST_HELD) {
            return Self::All;
        }
        Self::Only(destinations)
    }
}

/// Permission to send to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// To whom.
    pub destination: u32,
    /// In what way.
    pub kind: PermitKind,
    /// Until when, by the clock of the host.
    pub until: Time,
    /// Permitted rate.
    pub rate: Rate,
}

/// The kinds of permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitKind {
    /// A timeslice: to this destination alone.
    Slot,
    /// A rate limit (§3.3), beside those of other destinations.
    Limit,
    /// The controller cannot schedule this destination: send without coordination.
    Exempt,
}

/// A controller's heartbeat to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// Its epoch, or the highest that it knows.
    pub epoch: Epoch,
    /// True if it leads.
    pub leads: bool,
}

/// The reason why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refused {
    /// Too short, too long, or not of the form that its kind has.
    Malformed,
    /// Of another version.
    Version,
    /// From an agent that is none, or not from who it says.
    Sender,
    /// For somebody else.
    Addressee,
    /// The tag is wrong.
    Forged,
    /// Seen before, or overtaken by a newer one.
    Replayed,
    /// Of an epoch or incarnation that is over.
    Outdated,
    /// From a controller that would replace one that is well.
    Unwanted,
}

impl Refused {
    /// Every reason, in the order of counters.
    pub const ALL: [Self; 8] = [
        Self::Malformed,
        Self::Version,
        Self::Sender,
        Self::Addressee,
        Self::Forged,
        Self::Replayed,
        Self::Outdated,
        Self::Unwanted,
    ];
}

/// Messages accepted, and refused by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounters {
    /// Messages that were acted on.
    pub accepted: u64,
    /// Messages that changed nothing, in the order of [`Refused::ALL`].
    pub refused: [u64; Refused::ALL.len()],
}

impl MessageCounters {
    pub(super) fn refuse(&mut self, reason: Refused) {
        self.refused[reason as usize] += 1;
    }

    /// Messages refused for a reason.
    pub fn refused(&self, reason: Refused) -> u64 {
        self.refused[reason as usize]
    }
}

/// The newest number that was accepted from a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window(u64, u64);

impl Window {
    /// Accepts numbers that only rise.
    pub(super) fn admit(&mut self, header: &Header) -> Result<(), Refused> {
        let number = (header.incarnation, header.sequence);
        if number <= (self.0, self.1) {
            return Err(Refused::Replayed);
        }
        (self.0, self.1) = number;
        Ok(())
    }
}

/// The sender and addressee of a message, unproven; for looking up the key.
pub fn peek(bytes: &[u8]) -> Result<Header, Refused> {
    if bytes.len() < HEADER + TAG {
        return Err(Refused::Malformed);
    }
    if bytes[0] != VERSION {
        return Err(Refused::Version);
    }
    let mut fields = Reader(&bytes[2..HEADER]);
    Ok(Header {
        from: fields.u32()?,
        to: fields.u32()?,
        incarnation: fields.u64()?,
        sequence: fields.u64()?,
    })
}

/// Proves the tag and reads the body.
pub fn open(key: &Key, bytes: &[u8]) -> Result<Body, Refused> {
    peek(bytes)?;
    let (signed, tag) = bytes.split_at(bytes.len() - TAG);
    let tag = u128::from_le_bytes(tag.try_into().map_err(|_| Refused::Malformed)?);
    if key.tag(signed) != tag {
        return Err(Refused::Forged);
    }
    let mut fields = Reader(&signed[HEADER..]);
    let body = match signed[1] {
        1 => Body::Report(fields.report()?),
        2 => Body::Directive(fields.directive()?),
        3 => Body::Beat(fields.beat()?),
        _ => return Err(Refused::Malformed),
    };
    fields
        .0
        .is_empty()
        .then_some(body)
        .ok_or(Refused::Malformed)
}

/// Appends a message to an empty buffer.
pub fn seal(key: &Key, header: &Header, body: &Body, buffer: &mut Vec<u8>) {
    let kind = match body {
        Body::Report(_) => 1,
        Body::Directive(_) => 2,
        Body::Beat(_) => 3,
    };
    buffer.extend([VERSION, kind]);
    buffer.extend(header.from.to_le_bytes());
    buffer.extend(header.to.to_le_bytes());
    buffer.extend(header.incarnation.to_le_bytes());
    buffer.extend(header.sequence.to_le_bytes());
    match body {
        Body::Report(report) => report.write(buffer),
        Body::Directive(directive) => directive.write(buffer),
        Body::Beat(beat) => {
            beat.epoch.write(buffer);
            buffer.push(u8::from(beat.leads));
        }
    }
    let tag = key.tag(buffer);
    buffer.extend(tag.to_le_bytes());
}
