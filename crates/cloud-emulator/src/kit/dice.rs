//! All randomness of a cloud, from one seed.
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Three streams, so that an added fault or a changed lag leaves the ids of a history as they were.
#[derive(Debug)]
pub struct Dice {
    ids: StdRng,
    lags: StdRng,
    faults: StdRng,
}
impl Dice {
    /// The same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        let stream = |number: u64| StdRng::seed_from_u64(seed.rotate_left(8) ^ number);
        Dice { ids: stream(1), lags: stream(2), faults: stream(3) }
    }
    /// A number for an id.
    pub fn id(&mut self) -> u32 {
        self.ids.next_u32()
    }
    /// From 0 to `most`, both included; for lags, durations and page lengths.
    pub fn up_to(&mut self, most: u64) -> u64 {
        match most {
            0 => 0,
            u64::MAX => self.lags.next_u64(),
            most => self.lags.next_u64() % (most + 1),
        }
    }
    /// Does something of this probability happen to the present call?
    pub fn happens(&mut self, probability: f64) -> bool {
        if probability >= 1.0 {
            return true;
        }
        // The upper 32 bits are exact in a double.
        f64::from(self.faults.next_u32()) / 4_294_967_296.0 < probability
    }
}
