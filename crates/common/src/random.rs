//! Randomness, handed in: seeded by the operating system in production, by the history's number in the simulator.
use rand::rngs::{StdRng, SysRng};
use rand::{Rng, SeedableRng, TryRng};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A shared source of random numbers.
#[derive(Debug)]
pub struct Random(Mutex<StdRng>);

impl Random {
    /// Seeded by the operating system.
    pub fn from_system() -> Result<Self, rand::rngs::SysError> {
        let mut seed = [0_u8; 32];
        SysRng.try_fill_bytes(&mut seed)?;
        Ok(Random(Mutex::new(StdRng::from_seed(seed))))
    }
    /// The same numbers every time.
    pub fn seeded(seed: u64) -> Self {
        Random(Mutex::new(StdRng::seed_from_u64(seed)))
    }
    /// 64 random bits.
    pub fn bits64(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }
    /// 128 random bits.
    pub fn bits128(&self) -> [u8; 16] {
        let mut bytes = [0_u8; 16];
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(&mut bytes);
        bytes
    }
    /// A number from 0 to `n` - 1; 0 if `n` is 0.
    pub fn below(&self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.bits64() % n }
    }
    /// True one time in `n`; never if `n` is 0.
    pub fn one_in(&self, n: u64) -> bool {
        n > 0 && self.below(n) == 0
    }
    /// `base` plus up to `percent` per cent of it.
    pub fn jitter(&self, base: Duration, percent: u32) -> Duration {
        let most = u64::try_from(base.as_millis()).unwrap_or(u64::MAX / 1000).saturating_mul(u64::from(percent)) / 100;
        base + Duration::from_millis(self.below(most + 1))
    }
}
