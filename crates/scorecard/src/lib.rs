//! The scorecard: simulated histories of every engine user, one table, exit status 1 on any damage.
//!
//! [`scenarios`] are families of histories by number; [`acts`] is what users do in them, with their [`hands`]; [`checks`] is what must hold;
//! [`process`] and [`emulated`] are what every controller's subject stands on; [`mutations`] switch one rule off and look for the damage; [`runner`] counts, [`table`] prints.
pub mod acts;
pub mod bench;
pub mod checks;
pub mod emulated;
pub mod hands;
pub mod mutations;
pub mod openstack;
pub mod process;
pub mod program;
pub mod runner;
pub mod sample;
pub mod scenarios;
pub mod table;
