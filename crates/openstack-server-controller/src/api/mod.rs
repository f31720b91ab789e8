//! The custom resources: what a person writes down, and what is shown back. Nothing else lives here.
//!
//! Rules that a webhook would check are CEL rules of the schema, so that the API server refuses what this controller could
//! not serve. Nested types keep the names of the Go provider's API, so that its objects are read as they are.
pub mod cluster;
pub mod device;
pub mod identity;
pub mod machine;
pub mod params;
pub mod port;
pub mod server;
pub mod template;

pub use cluster::*;
pub use device::*;
pub use identity::*;
pub use machine::*;
pub use params::*;
pub use port::*;
pub use server::*;
pub use template::*;

/// The API group of all kinds here.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// The fields say what their values mean; the enum's own words would take their place.
fn without_description(schema: &mut schemars::Schema) {
    schema.remove("description");
}
