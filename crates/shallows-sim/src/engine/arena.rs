//! Places for what is on its way, used again and again.

/// Things of one kind, each under a number of its own.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

/// Packets fill most of a cache line; none lies across two.
#[derive(Debug)]
#[repr(align(64))]
struct Place<T>(T);

impl<T> Arena<T> {
    pub(crate) fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Puts a thing where the last one was taken from, whose cache lines are likely at hand.
    #[inline]
    pub(crate) fn insert(&mut self, thing: T) -> u32 {
        self.insert_with(|_| thing)
    }

    /// The same for a thing that knows its number.
    #[inline]
    pub(crate) fn insert_with(&mut self, thing: impl FnOnce(u32) -> T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.places[number as usize] = Place(thing(number));
            return number;
        }
        let number = self.places.len() as u32;
        self.grow(thing(number));
        number
    }

    #[cold]
    fn grow(&mut self, thing: T) {
        self.places.push(Place(thing));
    }

    /// Gives the place of a thing to others.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        self.free.push(number);
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> &T {
        &self.places[number as usize].0
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut T {
        &mut self.places[number as usize].0
    }
}
