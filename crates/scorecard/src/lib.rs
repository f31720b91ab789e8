//! scorecard
