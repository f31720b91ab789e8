//! Names that are part of this controller's API: conditions, reasons, finalizers, limits. Documented in docs/operations.md.
use common::peer::Peer;

/// The controller: in annotations, finalizer and place.
pub const CONTROLLER: &str = "openstack";
/// The kind that owns servers, ports, trunks and volumes.
pub const KIND: &str = "OpenStackServer";
/// What `cluster.x-k8s.io/managed-by` must say for a cluster to be served, if it says anything.
pub const MANAGER: &str = "custody-openstack";
/// The Go provider of the same kinds, as `adopt-from` names it.
pub const CAPO: &str = "capo";

/// Finalizer that the Go provider puts on servers.
pub const CAPO_SERVER_FINALIZER: &str = "openstackserver.infrastructure.cluster.x-k8s.io";
/// Finalizer that the Go provider puts on clusters.
pub const CAPO_CLUSTER_FINALIZER: &str = "openstackcluster.infrastructure.cluster.x-k8s.io";
/// Finalizer that the Go provider puts on machines.
pub const CAPO_MACHINE_FINALIZER: &str = "openstackmachine.infrastructure.cluster.x-k8s.io";
/// Finalizer that the Go provider puts on the claims of its servers.
pub const CAPO_CLAIM_FINALIZER: &str = "openstackmachine.infrastructure.cluster.x-k8s.io/ip-claim";
/// Who else may serve these kinds.
pub const PEERS: &[Peer] =
    &[Peer { name: CAPO, finalizers: &[CAPO_SERVER_FINALIZER, CAPO_CLUSTER_FINALIZER, CAPO_MACHINE_FINALIZER] }];

/// The instance is there, is active, and was never lost.
pub const INSTANCE_READY: &str = "InstanceReady";
/// No more mutation except deletion.
pub const FAILED: &str = "Failed";
/// The credentials were accepted.
pub const AUTHENTICATED: &str = "OpenStackAuthenticationSucceeded";
/// The floating address of the pool is on the server.
pub const FLOATING_ADDRESS_READY: &str = "FloatingAddressFromPoolReady";
/// Something in the cloud differs from the spec, and is left as it is.
pub const DRIFTED: &str = "Drifted";
/// The API server of the cluster has an address. On clusters.
pub const ENDPOINT_READY: &str = "APIEndpointReady";
/// The bastion is as wanted. On clusters.
pub const BASTION_READY: &str = "BastionReady";

/// Reasons of conditions, beside those that all controllers share.
pub mod reason {
    /// It is as it should be.
    pub const READY: &str = "Ready";
    /// The server is not there yet, or not active yet.
    pub const INSTANCE_NOT_READY: &str = "InstanceNotReady";
    /// A name or filter of the spec does not lead to exactly one thing.
    pub const DEPENDENCY_FAILED: &str = "DependencyFailed";
    /// A Kubernetes object that the spec names is not there yet.
    pub const WAITING_FOR_DEPENDENCY: &str = "WaitingForDependency";
    /// A port could not be made.
    pub const PORT_CREATE_FAILED: &str = "PortCreateFailed";
    /// The server could not be made.
    pub const INSTANCE_CREATE_FAILED: &str = "InstanceCreateFailed";
    /// The cloud refuses to make it as things are: something that it names is not there, or an address is taken. It can come.
    pub const CREATE_REFUSED: &str = "CreateRefused";
    /// The server was unexpectedly deleted.
    pub const INSTANCE_NOT_FOUND: &str = "InstanceNotFound";
    /// Somebody deleted the server.
    pub const INSTANCE_DELETED: &str = "InstanceDeleted";
    /// The server is in ERROR.
    pub const INSTANCE_STATE_ERROR: &str = "InstanceStateError";
    /// The server could not be deleted.
    pub const INSTANCE_DELETE_FAILED: &str = "InstanceDeleteFailed";
    /// The cloud refuses the spec as it is, again and again.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// The project has as much as it may have.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// No host has room for the server.
    pub const NO_VALID_HOST: &str = "NoValidHost";
    /// The subnet has no free address.
    pub const SUBNET_FULL: &str = "SubnetFull";
    /// The cloud's policy forbids the call.
    pub const POLICY_FORBIDDEN: &str = "PolicyForbidden";
    /// The cloud does not answer, or something in between answers for it.
    pub const CLOUD_UNAVAILABLE: &str = "OpenStackError";
    /// The credentials were not accepted, or cannot be read.
    pub const AUTHENTICATION_FAILED: &str = "OpenStackAuthenticationFailed";
    /// The address of the pool cannot be put on the server.
    pub const FLOATING_IP_ERROR: &str = "FloatingIPError";
    /// The pool has not given an address yet.
    pub const WAITING_FOR_ADDRESS: &str = "WaitingForIPAddressClaim";
    /// What is to be adopted does not fit the spec.
    pub const ADOPTION_MISMATCH: &str = "AdoptionMismatch";
    /// The cloud lacks something that the spec needs.
    pub const NOT_SUPPORTED: &str = "NotSupported";
    /// A request that can never be served, whatever the cloud says.
    pub const TOO_LARGE: &str = "UserDataTooLarge";
    /// No Machine of Cluster API owns the machine yet.
    pub const WAITING_FOR_MACHINE: &str = "WaitingForMachine";
    /// The cluster has no network yet.
    pub const WAITING_FOR_CLUSTER: &str = "WaitingForClusterInfrastructure";
    /// The Machine has no bootstrap data yet.
    pub const WAITING_FOR_BOOTSTRAP: &str = "WaitingForBootstrapData";
    /// The cluster does not say where its API server is.
    pub const ENDPOINT_NOT_GIVEN: &str = "EndpointNotGiven";
    /// Everything is as the spec says.
    pub const IN_SYNC: &str = "InSync";
    /// Something is not as the spec says.
    pub const DIFFERS: &str = "Differs";
}

/// Nova's limit of user data, in base64 characters.
pub const MOST_USER_DATA: usize = 65_535;
/// Key of user data in its Secret.
pub const USER_DATA_KEY: &str = "value";
/// Keys of credentials in their Secret.
pub const CLOUDS_KEY: &str = "clouds.yaml";
/// Certificates of the cloud's authority, in PEM, in the same Secret.
pub const CA_KEY: &str = "cacert";
