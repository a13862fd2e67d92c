//! Traces for Perfetto (ui.perfetto.dev): tracks with slices, counters and instants.
//!
//! A trace is a sequence of `TracePacket` messages in protobuf's wire format. The few fields that
//! are needed are encoded by hand: a generated encoder would add a code generator to every build.
//! Field numbers are those of Perfetto's `trace_packet.proto`, `track_descriptor.proto` and
//! `track_event.proto`.

use std::io::Write as _;
use std::path::Path;

use shallows_core::units::Time;

use crate::ResultsError;
use crate::file::{NewFile, write_named};

/// Fields of `TracePacket`.
const TIMESTAMP: u32 = 8;
const SEQUENCE_ID: u32 = 10;
const TRACK_EVENT: u32 = 11;
const TRACK_DESCRIPTOR: u32 = 60;

/// Types of a `TrackEvent`.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// A number of a counter's unit: `CounterDescriptor.UNIT_SIZE_BYTES`.
const UNIT_BYTES: u64 = 3;

/// A track of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track(u64);

/// A trace in the making.
#[derive(Debug)]
pub struct TraceWriter {
    file: NewFile,
    path: std::path::PathBuf,
    tracks: u64,
    bytes: u64,
}

impl TraceWriter {
    /// Begins a trace that gets its name when it is [finished](Self::finish).
    pub fn create(path: &Path) -> Result<Self, ResultsError> {
        Ok(Self {
            file: write_named(path, || Ok(NewFile::create(path)?))?,
            path: path.to_owned(),
            tracks: 0,
            bytes: 0,
        })
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A track for slices and instants, below `parent` if there is one.
    pub fn track(&mut self, name: &str, parent: Option<Track>) -> Result<Track, ResultsError> {
        self.describe(name, parent, None)
    }

    /// A track for a counter of bytes.
    pub fn byte_counter(
        &mut self,
        name: &str,
        parent: Option<Track>,
    ) -> Result<Track, ResultsError> {
        let mut counter = Message::default();
        counter.number(3, UNIT_BYTES);
        self.describe(name, parent, Some(&counter))
    }

    fn describe(
        &mut self,
        name: &str,
        parent: Option<Track>,
        counter: Option<&Message>,
    ) -> Result<Track, ResultsError> {
        self.tracks += 1;
        let track = Track(self.tracks);
        let mut descriptor = Message::default();
        descriptor.number(1, track.0);
        descriptor.text(2, name);
        if let Some(Track(parent)) = parent {
            descriptor.number(5, parent);
        }
        if let Some(counter) = counter {
            descriptor.message(8, counter);
        }
        let mut packet = Message::default();
        packet.message(TRACK_DESCRIPTOR, &descriptor);
        self.put(packet)?;
        Ok(track)
    }

    /// Sets a counter.
    pub fn count(&mut self, track: Track, at: Time, value: i64) -> Result<(), ResultsError> {
        let mut event = Message::event(COUNTER, track);
        event.number(30, value as u64);
        self.event(at, &event)
    }

    /// A slice from a start to an end, with numbers about it.
    pub fn slice(
        &mut self,
        track: Track,
        name: &str,
        (start, end): (Time, Time),
        numbers: &[(&str, u64)],
    ) -> Result<(), ResultsError> {
        let mut begin = Message::event(SLICE_BEGIN, track);
        begin.text(23, name);
        for &(name, number) in numbers {
            begin.annotation(name, number);
        }
        self.event(start, &begin)?;
        self.event(end, &Message::event(SLICE_END, track))
    }

    /// An instant, with a number about it.
    pub fn instant(
        &mut self,
        track: Track,
        name: &str,
        at: Time,
        (of, number): (&str, u64),
    ) -> Result<(), ResultsError> {
        let mut event = Message::event(INSTANT, track);
        event.text(23, name);
        event.annotation(of, number);
        self.event(at, &event)
    }

    fn event(&mut self, at: Time, event: &Message) -> Result<(), ResultsError> {
        let mut packet = Message::default();
        packet.number(TIMESTAMP, at.ps() / 1000);
        packet.message(TRACK_EVENT, event);
        self.put(packet)
    }

    fn put(&mut self, mut packet: Message) -> Result<(), ResultsError> {
        packet.number(SEQUENCE_ID, 1);
        let mut trace = Message::default();
        trace.message(1, &packet);
        self.bytes += trace.0.len() as u64;
        write_named(&self.path, || Ok(self.file.write_all(&trace.0)?))
    }

    /// Gives the file its name.
    pub fn finish(self) -> Result<(), ResultsError> {
        let Self { file, path, .. } = self;
        write_named(&path, || file.finish())
    }
}

/// A protobuf message.
#[derive(Clone, Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn event(kind: u64, track: Track) -> Self {
        let mut event = Self::default();
        event.number(9, kind);
        event.number(11, track.0);
        event
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }

    /// A `DebugAnnotation` with an unsigned value.
    fn annotation(&mut self, name: &str, value: u64) {
        let mut annotation = Self::default();
        annotation.text(10, name);
        annotation.number(3, value);
        self.message(4, &annotation);
    }
}
