//! How the calls to the cloud are named in metrics and logs.
use crate::cloud::Kind;
use common::process::metered::Names;
use http::Method;

/// Service, operations and request ids.
pub const NAMES: Names = Names { service: "sample", operation, request_id: "x-request-id" };

/// `<plural>.<verb>`, as the cloud's permissions are called; ids are never part of it.
fn operation(method: &Method, path: &str) -> String {
    let mut parts = path.trim_start_matches('/').split('/').skip(1);
    let (collection, thing, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.plural() == collection) else {
        return if collection == "whoami" { "whoami".to_owned() } else { "other".to_owned() };
    };
    let verb = match (method.as_str(), thing.is_some(), more.is_some()) {
        ("GET", false, _) => "list",
        ("GET", true, _) => "get",
        ("POST", ..) => "create",
        ("PUT", _, true) => "tag",
        ("PATCH", ..) => "update",
        ("DELETE", ..) => "delete",
        _ => "other",
    };
    format!("{}.{verb}", kind.plural())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_named_as_permissions_and_never_by_ids() {
        let name = |method: Method, path: &str| operation(&method, path);
        assert_eq!(name(Method::GET, "/v1/networks"), "networks.list");
        assert_eq!(name(Method::GET, "/v1/networks/network-1"), "networks.get");
        assert_eq!(name(Method::POST, "/v1/disks"), "disks.create");
        assert_eq!(name(Method::PUT, "/v1/addresses/address-1/tags"), "addresses.tag");
        assert_eq!(name(Method::PATCH, "/v1/machines/machine-1"), "machines.update");
        assert_eq!(name(Method::DELETE, "/v1/routes/route-1"), "routes.delete");
        assert_eq!(name(Method::GET, "/v1/whoami"), "whoami");
        assert_eq!(name(Method::GET, "/v1/secrets/x"), "other");
    }
}
