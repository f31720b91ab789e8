//! How many requests may be under way at once, for all passes together. Nobody sets it: it grows while the API server keeps up
//! and is halved when the API server says that it is too much, so that we take what its priority and fairness leave to us.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// At the start.
const FIRST: f64 = 8.0;
/// Never less: somebody must find out when it gets better.
const LEAST: f64 = 1.0;
/// Never more: what a process holds in memory is bounded too.
const MOST: f64 = 64.0;

/// What an answer says about the load of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It keeps up.
    Fine,
    /// It is too much: 429, 503, or no answer in time.
    TooMuch,
    /// Nothing: the request was given up, or never got there.
    None,
}

/// The window, without any I/O: additive increase, multiplicative decrease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    limit: f64,
    under_way: u32,
    /// Counts decreases.
    decreases: u64,
}
impl Default for Window {
    fn default() -> Self {
        Window { limit: FIRST, under_way: 0, decreases: 0 }
    }
}
/// What a request that is under way remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun(u64);
impl Window {
    /// One more request, if there is room.
    pub fn begin(&mut self) -> Option<Begun> {
        if !self.has_room() {
            return None;
        }
        self.under_way += 1;
        Some(Begun(self.decreases))
    }
    /// What an answer says.
    pub fn learn(&mut self, begun: Begun, sign: Sign) {
        match sign {
            // One more for each whole window of answers. A window that is not used says nothing about a larger one.
            Sign::Fine if f64::from(self.under_way) * 2.0 >= self.limit => {
                self.limit = (self.limit + 1.0 / self.limit).min(MOST);
            }
            // Requests sent before the last decrease tell of the same overload: it counts once.
            Sign::TooMuch if begun.0 == self.decreases => {
                self.limit = (self.limit / 2.0).max(LEAST);
                self.decreases += 1;
            }
            Sign::Fine | Sign::TooMuch | Sign::None => {}
        }
    }
    /// A request is over.
    pub fn end(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }
    /// Is there room for one more?
    pub fn has_room(&self) -> bool {
        f64::from(self.under_way) + 1.0 <= self.limit
    }
    /// So many at once, now.
    pub fn limit(&self) -> f64 {
        self.limit
    }
}

/// The window that all requests share.
#[derive(Clone, Debug, Default)]
pub struct Pace(Arc<Shared>);
#[derive(Debug, Default)]
struct Shared {
    window: Mutex<Window>,
    room: Notify,
}
impl Shared {
    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
impl Pace {
    /// Waits for room.
    pub async fn enter(&self) -> Place {
        loop {
            let room = self.0.room.notified();
            let (begun, more) = {
                let mut window = self.0.window();
                (window.begin(), window.has_room())
            };
            if let Some(begun) = begun {
                // A window that grew has room for the next one, too.
                if more {
                    self.0.room.notify_one();
                }
                return Place { shared: self.0.clone(), begun };
            }
            room.await;
        }
    }
    /// So many at once, now.
    pub fn limit(&self) -> f64 {
        self.0.window().limit()
    }
}

/// A request's place in the window, kept while it waits to be repeated; given back when dropped.
#[derive(Debug)]
pub struct Place {
    shared: Arc<Shared>,
    begun: Begun,
}
impl Place {
    /// What an answer says.
    pub fn learn(&mut self, sign: Sign) {
        let mut window = self.shared.window();
        window.learn(self.begun, sign);
        // What is sent from now on is sent under the new limit.
        self.begun = Begun(window.decreases);
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        let mut window = self.shared.window();
        window.end();
        let room = window.has_room();
        drop(window);
        if room {
            self.shared.room.notify_one();
        }
    }
}

/// How long a request that was refused waits: as long as the API server says, at least a little, longer each time, and
/// within reason.
pub fn wait(asked: Option<Duration>, time: u32) -> Duration {
    let asked = asked.unwrap_or_default().min(Duration::from_secs(5));
    asked.max(Duration::from_millis(250) * time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A window of answers, all sent before the first of them came.
    fn round(window: &mut Window, sign: Sign) -> usize {
        let begun: Vec<Begun> = std::iter::from_fn(|| window.begin()).collect();
        for one in &begun {
            window.learn(*one, sign);
        }
        for _ in &begun {
            window.end();
        }
        begun.len()
    }
    #[test]
    fn it_grows_by_one_each_round_and_has_an_end() {
        let mut window = Window::default();
        let sizes: Vec<usize> = (0..4).map(|_| round(&mut window, Sign::Fine)).collect();
        assert_eq!(sizes, [8, 8, 9, 10]);
        for _ in 0..200 {
            round(&mut window, Sign::Fine);
        }
        assert_eq!(round(&mut window, Sign::Fine), 64);
    }
    #[test]
    fn it_is_halved_once_for_one_overload_and_never_closes() {
        let mut window = Window::default();
        assert_eq!(round(&mut window, Sign::TooMuch), 8);
        assert!((window.limit() - 4.0).abs() < 1e-9, "eight refusals of one round count once: {}", window.limit());
        let sizes: Vec<usize> = (0..4).map(|_| round(&mut window, Sign::TooMuch)).collect();
        assert_eq!(sizes, [4, 2, 1, 1]);
    }
    #[test]
    fn what_is_not_used_does_not_grow() {
        let mut window = Window::default();
        for _ in 0..100 {
            let begun = window.begin().unwrap();
            window.learn(begun, Sign::Fine);
            window.end();
        }
        assert!((window.limit() - FIRST).abs() < 1e-9);
        assert_eq!(round(&mut window, Sign::None), 8, "what was given up says nothing");
    }
    proptest! {
        #[test]
        fn whatever_is_answered_somebody_may_ask_and_not_too_many(signs in prop::collection::vec(0..3_u8, 0..400)) {
            let mut window = Window::default();
            for sign in signs {
                round(&mut window, [Sign::Fine, Sign::TooMuch, Sign::None][usize::from(sign)]);
                prop_assert!((LEAST..=MOST).contains(&window.limit()));
                prop_assert_eq!(window.under_way, 0);
                prop_assert!(window.begin().is_some());
                window.end();
            }
        }
    }
    #[tokio::test]
    async fn passes_wait_for_room_and_get_it() {
        let pace = Pace::default();
        let mut places: Vec<Place> = Vec::new();
        for _ in 0..8 {
            places.push(pace.enter().await);
        }
        let waiting = tokio::spawn({
            let pace = pace.clone();
            async move { drop(pace.enter().await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "the window is full");
        places[0].learn(Sign::TooMuch);
        places.truncate(4);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "half as many are too many still");
        places.pop();
        waiting.await.unwrap();
        assert!((pace.limit() - 4.0).abs() < 1e-9);
    }
    #[test]
    fn the_api_server_says_how_long_to_wait_within_reason() {
        assert_eq!(wait(Some(Duration::from_secs(2)), 1), Duration::from_secs(2));
        assert_eq!(wait(Some(Duration::from_mins(10)), 1), Duration::from_secs(5));
        assert_eq!(wait(None, 3), Duration::from_millis(750));
    }
}
