/// Memory for frames, in slots of one size that are used again and again.
///
/// It grows when more frames wait than ever before, up to a limit that is far beyond what ports
/// hold: it is there for ports with unlimited buffers.
#[derive(Debug)]
pub struct FrameStore {
    slots: Vec<Box<[u8]>>,
    free: Vec<u32>,
    slot_size: usize,
    most: usize,
}

impl FrameStore {
    /// A store for at most `most` frames of up to `slot_size` bytes.
    pub fn new(slot_size: usize, most: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            slot_size,
            most,
        }
    }

    /// Copies a frame, given in two parts, into a slot. `None` if it is too long or memory is full.
    pub fn insert(&mut self, head: &[u8], tail: &[u8]) -> Option<u32> {
        let length = head.len() + tail.len();
        if length > self.slot_size {
            return None;
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < self.most => {
                self.slots.push(vec![0; self.slot_size].into());
                (self.slots.len() - 1) as u32
            }
            None => return None,
        };
        let bytes = &mut self.slots[slot as usize];
        bytes[..head.len()].copy_from_slice(head);
        bytes[head.len()..length].copy_from_slice(tail);
        Some(slot)
    }

    /// A copy of the first `length` bytes of a slot.
    pub fn duplicate(&mut self, slot: u32, length: u32) -> Option<u32> {
        let original = std::mem::take(&mut self.slots[slot as usize]);
        let copy = self.insert(&original[..length as usize], &[]);
        self.slots[slot as usize] = original;
        copy
    }

    /// The first `length` bytes of a slot.
    #[inline]
    pub fn bytes(&self, slot: u32, length: u32) -> &[u8] {
        &self.slots[slot as usize][..length as usize]
    }

    /// The first `length` bytes of a slot, to change them.
    #[inline]
    pub fn bytes_mut(&mut self, slot: u32, length: u32) -> &mut [u8] {
        &mut self.slots[slot as usize][..length as usize]
    }

    /// Gives a slot back.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Frames in store.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether no frame is in store.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
