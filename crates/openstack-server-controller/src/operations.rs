//! How the calls to the cloud are named in metrics and logs.
use common::process::metered::Names;
use http::Method;

/// Service, operations and request ids.
pub const NAMES: Names = Names { service: "openstack", operation, request_id: "x-openstack-request-id" };
/// Collections in use; anything else is `other`.
const COLLECTIONS: [&str; 24] = [
    "servers",
    "flavors",
    "os-server-groups",
    "os-keypairs",
    "os-availability-zone",
    "ports",
    "trunks",
    "networks",
    "subnets",
    "security-groups",
    "floatingips",
    "routers",
    "extensions",
    "images",
    "volumes",
    "types",
    "tokens",
    "limits",
    "quotas",
    "metadata",
    "loadbalancers",
    "listeners",
    "pools",
    "members",
];

/// `<collection>.<verb>`; ids are never part of it.
fn operation(method: &Method, path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    // Members are known within their pool only.
    let parts = match parts.iter().position(|part| *part == "members") {
        Some(at) => &parts[at..],
        None => &parts[..],
    };
    let Some(at) = parts.iter().position(|part| COLLECTIONS.contains(part)) else { return "version.get".to_owned() };
    let rest = &parts[at + 1..];
    let verb = match (method.as_str(), rest) {
        ("GET", [] | ["detail"]) => "list",
        ("GET", _) => "get",
        ("POST", []) => "create",
        ("DELETE", [_]) => "delete",
        ("PUT", [_]) => "update",
        (_, [_, "tags", ..]) => "tag",
        (_, [_, "metadata", ..]) => "mark",
        (_, [_, "action"]) => "action",
        (_, [_, "remove_subports"]) => "free",
        _ => "other",
    };
    format!("{}.{verb}", parts[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_named_by_collection_and_verb_and_never_by_ids() {
        let name = |method: Method, path: &str| operation(&method, path);
        assert_eq!(name(Method::GET, "/compute/v2.1/servers/detail"), "servers.list");
        assert_eq!(name(Method::GET, "/v2.1/servers/0f1e"), "servers.get");
        assert_eq!(name(Method::POST, "/v2.1/servers"), "servers.create");
        assert_eq!(name(Method::POST, "/v2.1/servers/0f1e/action"), "servers.action");
        assert_eq!(name(Method::POST, "/v2.1/servers/0f1e/metadata"), "servers.mark");
        assert_eq!(name(Method::PUT, "/v2.0/ports/0f1e/tags"), "ports.tag");
        assert_eq!(name(Method::PUT, "/v2.0/floatingips/0f1e"), "floatingips.update");
        assert_eq!(name(Method::DELETE, "/v3/0f1e/volumes/77"), "volumes.delete");
        assert_eq!(name(Method::POST, "/identity/v3/auth/tokens"), "tokens.create");
        assert_eq!(name(Method::GET, "/v2.1/"), "version.get");
    }
}
