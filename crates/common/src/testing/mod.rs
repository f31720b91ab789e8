//! The simulator: it runs production code (engine, clients, status) in virtual time and finds the damage.
//!
//! | room | what lives there |
//! |---|---|
//! | [`calendar`], [`chance`], [`sim`] | time, chance and state of one world: one seed, one history |
//! | [`wire`], [`watch`] | calls and watch events: late, lost, repeated, swallowed by a crash |
//! | [`server`], [`api`] | an API server in memory, and how a process reaches it |
//! | [`cloud`] | what is asked of a cloud, and the network to it |
//! | [`process`], [`world`] | controller processes, polled by hand |
//! | [`subject`] | a user of the engine; every controller implements it |
//! | [`evidence`] | what is held against a history |
//! | [`bare`] | the smallest user of the engine, without HTTP |
//! | [`one_owner`] | without the simulator: one owner and a clock, for tests of single visits |
pub mod api;
pub mod bare;
pub mod calendar;
pub mod chance;
pub mod cloud;
pub mod evidence;
pub mod one_owner;
pub mod process;
pub mod server;
pub mod sim;
pub mod sim_clock;
pub mod subject;
pub mod watch;
pub mod wire;
pub mod world;

pub use api::SimApi;
pub use calendar::Millis;
pub use chance::Chance;
pub use cloud::{Deed, Lags, SimCloud, SimTransport, Truth, Twin};
pub use server::{Key, Object, Server};
pub use sim::{ProcessId, Sim, State};
pub use subject::{Controller, Edit, Subject, Surroundings, Variety, Visit};
pub use world::{Beginning, World};
