//! The bodies of messages as bytes.

use super::{
    Beat, Claims, Directive, Epoch, Held, MOST_CLAIMS, MOST_DESTINATIONS, MOST_HELD, MOST_PERMITS,
    MOST_PLACES, MOST_RATES, Permit, PermitKind, Places, Refused, Report, Standing, Station,
};
use crate::units::{Rate, Time};

impl Epoch {
    pub(super) fn write(self, buffer: &mut Vec<u8>) {
        buffer.extend(self.counter.to_le_bytes());
        buffer.extend(self.leader.to_le_bytes());
    }
}

impl Report {
    pub(super) fn write(&self, buffer: &mut Vec<u8>) {
        let standing = self.standing as u8;
        let flags = [
            self.wants_answer,
            self.is_sending,
            !self.rates.is_empty(),
            self.claims.is_some(),
        ];
        let flags = flags.into_iter().zip(2..);
        buffer.push(flags.fold(standing, |all, (flag, bit)| all | u8::from(flag) << bit));
        self.epoch.write(buffer);
        buffer.extend(self.echo.0.to_le_bytes());
        buffer.extend(self.echo.1.ps().to_le_bytes());
        buffer.extend(self.clock.ps().to_le_bytes());
        buffer.extend(self.timeline.to_le_bytes());
        buffer.extend(self.grant.to_le_bytes());
        buffer.extend((self.backlog.len() as u16).to_le_bytes());
        for destination in &self.backlog {
            buffer.extend(destination.to_le_bytes());
        }
        if !self.rates.is_empty() {
            buffer.extend((self.rates.len() as u16).to_le_bytes());
        }
        for (destination, rate) in &self.rates {
            buffer.extend(destination.to_le_bytes());
            buffer.extend(rate.bps().to_le_bytes());
        }
        if let Some(claims) = &self.claims {
            buffer.extend(claims.seen.to_le_bytes());
            buffer.extend((claims.stations.len() as u16).to_le_bytes());
            for station in &claims.stations {
                buffer.extend(station.0);
            }
        }
    }
}

impl Directive {
    pub(super) fn write(&self, buffer: &mut Vec<u8>) {
        self.epoch.write(buffer);
        buffer.extend(self.incarnation.to_le_bytes());
        let is_on_demand = matches!(self.held, Held::Only(_));
        let has_places = self.places.is_some();
        buffer.push(
            u8::from(self.is_granting) | u8::from(is_on_demand) << 1 | u8::from(has_places) << 2,
        );
        buffer.extend(self.stamp.ps().to_le_bytes());
        buffer.extend(self.acknowledged.to_le_bytes());
        buffer.extend(self.timeline.to_le_bytes());
        buffer.extend(self.grant.to_le_bytes());
        if let Held::Only(destinations) = &self.held {
            buffer.extend((destinations.len() as u16).to_le_bytes());
            for destination in destinations {
                buffer.extend(destination.to_le_bytes());
            }
        }
        buffer.extend((self.permits.len() as u16).to_le_bytes());
        for permit in &self.permits {
            buffer.extend(permit.destination.to_le_bytes());
            buffer.push(permit.kind as u8);
            buffer.extend(permit.until.ps().to_le_bytes());
            buffer.extend(permit.rate.bps().to_le_bytes());
        }
        if let Some(places) = &self.places {
            buffer.extend(places.version.to_le_bytes());
            buffer.extend((places.places.len() as u16).to_le_bytes());
            for (station, host) in &places.places {
                buffer.extend(station.0);
                buffer.extend(host.to_le_bytes());
            }
        }
    }
}

/// Takes fields from the front of a body.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Refused> {
        let (&bytes, rest) = self.0.split_first_chunk().ok_or(Refused::Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn u8(&mut self) -> Result<u8, Refused> {
        self.take().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Result<bool, Refused> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Refused::Malformed),
        }
    }

    pub(super) fn u32(&mut self) -> Result<u32, Refused> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Refused> {
        self.take().map(u64::from_le_bytes)
    }

    fn time(&mut self) -> Result<Time, Refused> {
        self.u64().map(Time::from_ps)
    }

    fn count(&mut self, most: usize) -> Result<usize, Refused> {
        let count = usize::from(u16::from_le_bytes(self.take()?));
        (count <= most).then_some(count).ok_or(Refused::Malformed)
    }

    fn epoch(&mut self) -> Result<Epoch, Refused> {
        Ok(Epoch {
            counter: self.u32()?,
            leader: self.u32()?,
        })
    }

    pub(super) fn report(&mut self) -> Result<Report, Refused> {
        let flags = self.u8()?;
        let standing = match flags & 3 {
            0 => Standing::Coordinated,
            1 => Standing::Uncoordinated,
            2 => Standing::Leaving,
            _ => return Err(Refused::Malformed),
        };
        if flags >> 6 != 0 {
            return Err(Refused::Malformed);
        }
        Ok(Report {
            standing,
            wants_answer: flags & 4 != 0,
            is_sending: flags & 8 != 0,
            epoch: self.epoch()?,
            echo: (self.u64()?, self.time()?),
            clock: self.time()?,
            timeline: self.u32()?,
            grant: self.u64()?,
            backlog: {
                let count = self.count(MOST_DESTINATIONS)?;
                (0..count).map(|_| self.u32()).collect::<Result<_, _>>()?
            },
            rates: match flags & 16 {
                0 => Vec::new(),
                _ => self.rates()?,
            },
            claims: match flags & 32 {
                0 => None,
                _ => Some(self.claims()?),
            },
        })
    }

    fn rates(&mut self) -> Result<Vec<(u32, Rate)>, Refused> {
        let count = self.count(MOST_RATES)?;
        // Without any the flag is not set: a message has one form.
        if count == 0 {
            return Err(Refused::Malformed);
        }
        let rate = |_| Ok((self.u32()?, Rate::from_bps(self.u64()?)));
        (0..count).map(rate).collect()
    }

    fn claims(&mut self) -> Result<Claims, Refused> {
        let seen = self.u64()?;
        let count = self.count(MOST_CLAIMS)?;
        let stations = (0..count).map(|_| self.take().map(Station));
        let stations = stations.collect::<Result<_, _>>()?;
        Ok(Claims { seen, stations })
    }

    fn places(&mut self) -> Result<Places, Refused> {
        let version = self.u64()?;
        let count = self.count(MOST_PLACES)?;
        let place = |_| Ok((Station(self.take()?), self.u32()?));
        let places = (0..count).map(place).collect::<Result<_, _>>()?;
        Ok(Places { version, places })
    }

    fn held(&mut self) -> Result<Held, Refused> {
        let count = self.count(MOST_HELD)?;
        let destinations = (0..count).map(|_| self.u32());
        destinations.collect::<Result<_, _>>().map(Held::Only)
    }

    pub(super) fn directive(&mut self) -> Result<Directive, Refused> {
        let epoch = self.epoch()?;
        let incarnation = self.u64()?;
        let flags = self.u8()?;
        if flags >> 3 != 0 {
            return Err(Refused::Malformed);
        }
        Ok(Directive {
            epoch,
            incarnation,
            is_granting: flags & 1 != 0,
            stamp: self.time()?,
            acknowledged: self.u64()?,
            timeline: self.u32()?,
            grant: self.u64()?,
            held: match flags & 2 {
                0 => Held::All,
                _ => self.held()?,
            },
            permits: {
                let count = self.count(MOST_PERMITS)?;
                (0..count)
                    .map(|_| self.permit())
                    .collect::<Result<_, _>>()?
            },
            places: match flags & 4 {
                0 => None,
                _ => Some(self.places()?),
            },
        })
    }

    fn permit(&mut self) -> Result<Permit, Refused> {
        Ok(Permit {
            destination: self.u32()?,
            kind: match self.u8()? {
                0 => PermitKind::Slot,
                1 => PermitKind::Limit,
                2 => PermitKind::Exempt,
                _ => return Err(Refused::Malformed),
            },
            until: self.time()?,
            rate: Rate::from_bps(self.u64()?),
        })
    }

    pub(super) fn beat(&mut self) -> Result<Beat, Refused> {
        Ok(Beat {
            epoch: self.epoch()?,
            leads: self.flag()?,
        })
    }
}
