//! sample-controller
