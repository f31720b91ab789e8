//! The ownership engine: what to do for one owner, decided by two pure tables, done by one driver.
pub mod estate;
pub mod fence;
pub mod owner;
pub mod report;
