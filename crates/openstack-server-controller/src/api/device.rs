//! What disks, metadata and hints of a server are.
#![allow(unreachable_pub)] // the schema derive repeats each struct inside a function, where `pub` reaches nobody

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

const NO_SPACE: &str = "^[^ ]+$";

/// A root volume: the server boots from it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RootVolume {
    /// Size in GiB.
    #[serde(rename = "sizeGiB")]
    #[schemars(range(min = 1))]
    pub size_gib: i32,
    /// Volume type; left out, the cloud's default.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub type_: Option<String>,
    /// Availability zone of the volume; left out, the cloud's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<VolumeZone>,
}
/// A further disk.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockDevice {
    /// Name of the disk, unique in the list; the guest sees it as a device tag.
    #[schemars(length(min = 1, max = 60))]
    pub name: String,
    /// Size in GiB.
    #[serde(rename = "sizeGiB")]
    #[schemars(range(min = 1))]
    pub size_gib: i32,
    /// What it lies on.
    pub storage: BlockDeviceStorage,
}
/// What a disk lies on.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockDeviceStorage {
    /// `Local`: the host's disk. `Volume`: a volume.
    #[serde(rename = "type")]
    pub type_: StorageType,
    /// Of a volume: its type and zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<BlockDeviceVolume>,
}
/// What a disk can lie on.
#[derive(Serialize, Deserialize, schemars::JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline, transform = super::without_description)]
pub enum StorageType {
    /// The host's disk.
    #[default]
    Local,
    /// A volume.
    Volume,
}
/// Type and zone of a volume.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceVolume {
    /// Volume type; left out, the cloud's default.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub type_: Option<String>,
    /// Availability zone of the volume; left out, the cloud's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<VolumeZone>,
}
/// Availability zone of a volume.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[x_kube(validation = Rule::new("!has(self.from) || self.from == 'Name' ? has(self.name) : !has(self.name)")
    .message("name is required if from is 'Name' or default"))]
pub struct VolumeZone {
    /// `Name`: the zone named here. `Machine`: the zone of the server.
    #[serde(default)]
    pub from: ZoneSource,
    /// Name of the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255), regex(pattern = NO_SPACE))]
    pub name: Option<String>,
}
/// Where the zone of a volume comes from.
#[derive(Serialize, Deserialize, schemars::JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline, transform = super::without_description)]
pub enum ZoneSource {
    /// The zone is named.
    #[default]
    Name,
    /// The zone of the server.
    Machine,
}

/// One entry of the server's metadata.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerMetadata {
    /// The key.
    #[schemars(length(min = 1, max = 255))]
    pub key: String,
    /// Its value.
    #[schemars(length(min = 1, max = 255))]
    pub value: String,
}
/// A hint to the scheduler.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerHint {
    /// Its name.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Its value.
    pub value: HintValue,
}
/// The value of a hint.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[x_kube(
    validation = Rule::new("self.type == 'Bool' ? has(self.bool) : !has(self.bool)").message("bool is required when type is Bool, and forbidden otherwise"),
    validation = Rule::new("self.type == 'Number' ? has(self.number) : !has(self.number)").message("number is required when type is Number, and forbidden otherwise"),
    validation = Rule::new("self.type == 'String' ? has(self.string) : !has(self.string)").message("string is required when type is String, and forbidden otherwise"),
)]
pub struct HintValue {
    /// Which of the others is set.
    #[serde(rename = "type")]
    pub type_: HintType,
    /// A truth value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bool: Option<bool>,
    /// A number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i32>,
    /// Text of any sort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub string: Option<String>,
}
/// Types of hints.
#[derive(Serialize, Deserialize, schemars::JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline, transform = super::without_description)]
pub enum HintType {
    /// A truth value.
    #[default]
    Bool,
    /// Text of any sort.
    String,
    /// A number.
    Number,
}
