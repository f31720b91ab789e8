//! Rate limits: token buckets, one for each limit and principal.
use super::emulator::Naming;
use super::settings::RateLimit;
use jiff::Timestamp;
use std::collections::HashMap;
use std::time::Duration;

/// The buckets in use.
#[derive(Debug, Default)]
pub(crate) struct Buckets(HashMap<(usize, String), Bucket>);

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Timestamp,
}
impl Bucket {
    fn refill(&mut self, limit: &RateLimit, now: Timestamp) {
        let passed = now.duration_since(self.at).as_secs_f64().max(0.0);
        self.left = passed.mul_add(limit.per_second, self.left).min(f64::from(limit.burst));
        self.at = self.at.max(now);
    }
}

impl Buckets {
    /// Takes one from every bucket that the call falls under, or from none.
    pub(crate) fn spend(
        &mut self,
        limits: &[RateLimit],
        now: Timestamp,
        principal: &str,
        naming: &Naming<'_>,
    ) -> Result<(), Duration> {
        let covers = |limit: &RateLimit| {
            limit.principal.as_deref().is_none_or(|name| name == principal)
                && limit.kind.as_deref().is_none_or(|kind| kind == naming.kind)
                && limit.verb.as_deref().is_none_or(|verb| verb == naming.verb)
        };
        let mut wait = Duration::ZERO;
        for (index, limit) in limits.iter().enumerate().filter(|(_, limit)| covers(limit)) {
            let full = || Bucket { left: f64::from(limit.burst), at: now };
            let bucket = self.0.entry((index, principal.to_owned())).or_insert_with(full);
            bucket.refill(limit, now);
            if bucket.left < 1.0 {
                wait = wait.max(Duration::from_secs_f64(((1.0 - bucket.left) / limit.per_second).min(86_400.0)));
            }
        }
        if wait > Duration::ZERO {
            return Err(wait);
        }
        for (index, _) in limits.iter().enumerate().filter(|(_, limit)| covers(limit)) {
            if let Some(bucket) = self.0.get_mut(&(index, principal.to_owned())) {
                bucket.left -= 1.0;
            }
        }
        Ok(())
    }
}
